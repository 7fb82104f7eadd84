# Options, what is found on this machine, and the few functions that every folder uses to declare its targets.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

option(DDP_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(DDP_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
option(DDP_WARNINGS_AS_ERRORS "Treat warnings as errors (the presets do)" OFF)
set(DDP_SANITIZE "" CACHE STRING "Sanitizers for everything: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(DDP_PLUGIN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/ddp")
set(DDP_PLUGIN_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/ddp")
# Programs find the library from wherever the tree is moved to.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# ---- what everything needs ----
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)

# ---- what is used where it is found ----
find_package(Gloo CONFIG QUIET)
find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h)
find_package(Python3 COMPONENTS Interpreter QUIET)

add_library(ddp_flags INTERFACE)
target_compile_options(ddp_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wnon-virtual-dtor -Woverloaded-virtual -Wno-sign-conversion)
if(DDP_WARNINGS_AS_ERRORS)
  target_compile_options(ddp_flags INTERFACE -Werror)
endif()
target_include_directories(ddp_flags INTERFACE "${PROJECT_SOURCE_DIR}")
if(DDP_SANITIZE)
  add_compile_options(-fsanitize=${DDP_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DDP_SANITIZE})
  if(DDP_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_compile_definitions(DDP_SANITIZED=1)
  if(DDP_SANITIZE MATCHES "thread")
    # Asio's fences are invisible to ThreadSanitizer.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# ddp_add_library(name SOURCES … [LIBRARIES …])  a static library of one house's core or io.
function(ddp_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LIBRARIES} PRIVATE ddp_flags)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()

# ddp_add_program(name SOURCES … [LIBRARIES …])  an installed program.
function(ddp_add_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ddp_flags ${arg_LIBRARIES})
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# ddp_add_catch_test(name LABEL unit SOURCES … [LIBRARIES …])  each TEST_CASE becomes a ctest.
function(ddp_add_catch_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ddp_flags ${arg_LIBRARIES} Catch2::Catch2WithMain)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test_bin")
  catch_discover_tests(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# ddp_check_headers(name headers …)  every header compiles alone; `standard` 17 for the public ones.
function(ddp_check_headers name standard)
  foreach(header IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "${header}" id)
    set(source "${PROJECT_BINARY_DIR}/header_checks/${name}_${id}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"  // compiled alone\n")
    list(APPEND sources "${source}")
  endforeach()
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE ddp_flags)
  set_target_properties(${name} PROPERTIES CXX_STANDARD ${standard})
endfunction()

set_property(GLOBAL PROPERTY ddp_summary "")
# ddp_report(what state)  one line of the configure summary.
function(ddp_report what state)
  set_property(GLOBAL APPEND PROPERTY ddp_summary "${what}|${state}")
endfunction()

function(ddp_print_summary)
  get_property(lines GLOBAL PROPERTY ddp_summary)
  message(STATUS "ddplaunch ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, compiler ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(line IN LISTS lines)
    string(REPLACE "|" ": " line "${line}")
    message(STATUS "  ${line}")
  endforeach()
endfunction()
