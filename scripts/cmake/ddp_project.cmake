# Options, what is found on this machine, and the few functions that every folder uses to declare its targets.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(CheckCXXSourceCompiles)
include(CheckPIESupported)

set(DDP_BUILD_TESTS AUTO CACHE STRING
    "Build the tests: ON, OFF, or AUTO (where Catch2 is found, and only for this project itself)")
set_property(CACHE DDP_BUILD_TESTS PROPERTY STRINGS AUTO ON OFF)
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

# Loading shared libraries is most of what it costs to start the launcher, so our own
# programs have theirs linked in where that is possible.
set(DDP_LINKED_IN -static-libstdc++ -static-libgcc)
set(CMAKE_REQUIRED_LINK_OPTIONS ${DDP_LINKED_IN})
check_cxx_source_compiles("#include <iostream>\nint main() { std::cout << 1; }" DDP_CAN_LINK_RUNTIME_IN)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
find_library(DDP_JSON_ARCHIVE NAMES libboost_json.a HINTS "${Boost_DIR}/../..")
find_library(DDP_CONTAINER_ARCHIVE NAMES libboost_container.a HINTS "${Boost_DIR}/../..")
mark_as_advanced(DDP_JSON_ARCHIVE DDP_CONTAINER_ARCHIVE)
set(DDP_LINK_IN OFF)
if(DDP_CAN_LINK_RUNTIME_IN AND DDP_JSON_ARCHIVE AND DDP_CONTAINER_ARCHIVE AND NOT DDP_SANITIZE)
  set(DDP_LINK_IN ON)
endif()
add_library(ddp_json INTERFACE)
set(linked_in "$<BOOL:$<TARGET_PROPERTY:DDP_LINKED_IN>>")
target_link_libraries(ddp_json INTERFACE "$<$<NOT:${linked_in}>:Boost::json>" "$<${linked_in}:${DDP_JSON_ARCHIVE}>"
                      "$<${linked_in}:${DDP_CONTAINER_ARCHIVE}>")

# ---- what is used where it is found ----
find_package(Gloo CONFIG QUIET)
find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(DDP_BUILD_TESTS STREQUAL "AUTO")
  set(DDP_BUILD_TESTS OFF)
  if(PROJECT_IS_TOP_LEVEL)
    find_package(Catch2 2 QUIET)
    set(DDP_BUILD_TESTS "${Catch2_FOUND}")  # quoted: empty where the look for it is switched off
  endif()
endif()

add_library(ddp_flags INTERFACE)
target_compile_options(ddp_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       "$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12 at -O2 and above: the inside of an empty optional within a variant, and "text" + std::string.
  target_compile_options(ddp_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(DDP_WARNINGS_AS_ERRORS)
  target_compile_options(ddp_flags INTERFACE -Werror)
endif()
target_include_directories(ddp_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# What a parser of strangers' bytes should have: an overrun ends the process at once, and addresses can't be guessed.
check_pie_supported(LANGUAGES CXX)
if(NOT DDP_SANITIZE)
  target_compile_options(ddp_flags INTERFACE -fstack-protector-strong
                         "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  target_link_options(ddp_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
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

if(DDP_BUILD_FUZZERS)
  # The fuzzer must see which ways a parser takes, and the parsers are in the libraries.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# ddp_add_library(name SOURCES … [LIBRARIES …])  a static library of one house's core or io.
function(ddp_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_LIBRARIES} PRIVATE ddp_flags)
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()

# ddp_add_program(name [STARTS_FAST] SOURCES … [LIBRARIES …])  an installed program. STARTS_FAST: the runtime is linked
# in. Not for programs that use the SDK: objects of the C++ library go to and fro between them and it.
function(ddp_add_program name)
  cmake_parse_arguments(arg "STARTS_FAST" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ddp_flags ${arg_LIBRARIES})
  if(arg_STARTS_FAST AND DDP_LINK_IN)
    set_target_properties(${name} PROPERTIES DDP_LINKED_IN ON)
    target_link_options(${name} PRIVATE ${DDP_LINKED_IN})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# ddp_label_properties(label out)  what a label means to ctest. Tests that start processes, take ports or measure time
# run alone: beside others on two cores they would test the machine's load.
function(ddp_label_properties label out)
  set(properties LABELS "${label}")
  if(label MATCHES "^(integration|interop|device|bench)$")
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  set(${out} "${properties}" PARENT_SCOPE)
endfunction()

# ddp_add_command_test(name LABEL integration [TIMEOUT s] COMMAND …)  a script or program as one ctest; it skips itself
# by exiting with 77 after saying why.
function(ddp_add_command_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  ddp_label_properties("${arg_LABEL}" properties)
  add_test(NAME "${name}" COMMAND ${arg_COMMAND})
  set_tests_properties("${name}" PROPERTIES ${properties} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
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
  ddp_label_properties("${arg_LABEL}" properties)
  catch_discover_tests(${name} PROPERTIES ${properties} TIMEOUT ${arg_TIMEOUT})
endfunction()

# ddp_check_headers(name headers …)  every header compiles alone; `standard` 17 for the public ones.
function(ddp_check_headers name standard)
  set(sources "")
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
  set(tests "left out")
  if(DDP_BUILD_TESTS)
    set(tests "built")
  elseif(PROJECT_IS_TOP_LEVEL AND NOT Catch2_FOUND)
    set(tests "left out (Catch2 is not here, or DDP_BUILD_TESTS is OFF)")
  endif()
  list(APPEND lines "tests|${tests}")
  set(compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "ddplaunch ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, compiler ${compiler}")
  foreach(line IN LISTS lines)
    string(REPLACE "|" ": " line "${line}")
    message(STATUS "  ${line}")
  endforeach()
endfunction()
