# cmake -DSOURCE=… -DWORK=… -DGENERATOR=… -DCOMPILER=… -P bare_configure.cmake: a plain configure, with no preset and
# none of the optional parts to be found, succeeds and its summary says what is left out.
file(REMOVE_RECURSE "${WORK}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${WORK}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
          -DCMAKE_DISABLE_FIND_PACKAGE_Gloo=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
          -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON -DNCCL_INCLUDE_DIR=NCCL_INCLUDE_DIR-NOTFOUND
          -DCMAKE_IGNORE_PATH=/usr/include\;/usr/local/include
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "configuring failed (${code}):\n${output}")
endif()
foreach(line IN ITEMS "Gloo plug-in: left out" "NCCL plug-in: built" "tests: left out")
  if(NOT output MATCHES "${line}")
    message(FATAL_ERROR "the summary lacks \"${line}\":\n${output}")
  endif()
endforeach()
