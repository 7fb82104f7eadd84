# cmake -DBUILD=… -DSOURCE=… -DWORK=… -DGENERATOR=… -DCOMPILER=… -P run.cmake
# Installs the SDK, builds a program against it, runs it.
foreach(name IN ITEMS RANK WORLD_SIZE MASTER_ADDR MASTER_PORT)
  unset(ENV{${name}})
endforeach()
file(REMOVE_RECURSE "${WORK}")
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed (${code}): ${ARGN}\n${output}")
  endif()
endfunction()
must("${CMAKE_COMMAND}" --install "${BUILD}" --component sdk --prefix "${WORK}/prefix")
must("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
     "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_BUILD_TYPE=Debug)
must("${CMAKE_COMMAND}" --build "${WORK}/build")
must("${WORK}/build/consumer")
