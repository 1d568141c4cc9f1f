# The headers that most sources without torch parse, compiled once: JSON and text formatting cost more than what uses them.
#
#   peakbench_precompile(TARGET...)               modules; their sources are compiled together
#   peakbench_precompile_tests(TARGET...)         GoogleTest beside them; not optimised, as nothing times a test
#   peakbench_precompile_torch_tests(TARGET...)   LibTorch's headers, as the SDK has them
add_library(peakbench_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(peakbench_precompiled PRIVATE peakbench_options peakbench_sanitize fmt::fmt nlohmann_json::nlohmann_json)
set_target_properties(peakbench_precompiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
set(_peakbench_common <algorithm> <filesystem> <fmt/format.h> <fstream> <functional> <map> <memory> <nlohmann/json.hpp> <optional>
    <string> <vector>)
target_precompile_headers(peakbench_precompiled PRIVATE ${_peakbench_common})

# Most of a small source's time goes into headers and into templates that its neighbours instantiate, too: sources of a library are
# compiled up to forty at a time. Names in their anonymous namespaces must differ then. What looks at single files configures without it.
option(PEAKBENCH_UNITY "Compile the sources of a library several at a time" ON)
function(peakbench_unity)
  if(PEAKBENCH_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON)
    # EVAL, as a deferred call takes its variables' values when it is made.
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL _peakbench_batches ${ARGN})")
  endif()
endfunction()
# Batches of about the same size, once all sources are known.
function(_peakbench_batches)
  foreach(_target ${ARGN})
    get_target_property(_sources ${_target} SOURCES)
    list(LENGTH _sources _count)
    math(EXPR _batches "(${_count} + 39) / 40")
    math(EXPR _size "(${_count} + ${_batches} - 1) / ${_batches}")
    set_target_properties(${_target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${_size})
  endforeach()
endfunction()

function(peakbench_precompile)
  peakbench_unity(${ARGN})
  foreach(_target ${ARGN})
    target_link_libraries(${_target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    set_target_properties(${_target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_precompile_headers(${_target} REUSE_FROM peakbench_precompiled)
  endforeach()
endfunction()

function(peakbench_precompile_tests)
  if(NOT TARGET peakbench_precompiled_tests)
    add_library(peakbench_precompiled_tests OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(peakbench_precompiled_tests PRIVATE peakbench_options peakbench_sanitize fmt::fmt
      nlohmann_json::nlohmann_json GTest::gmock GTest::gtest)
    target_compile_options(peakbench_precompiled_tests PRIVATE -O0 -fPIC)
    target_precompile_headers(peakbench_precompiled_tests PRIVATE ${_peakbench_common} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  peakbench_unity(${ARGN})
  foreach(_target ${ARGN})
    target_link_libraries(${_target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json peakbench_sanitize GTest::gmock)
    target_compile_options(${_target} PRIVATE -O0 -fPIC)  # as the precompiled header was compiled
    target_precompile_headers(${_target} REUSE_FROM peakbench_precompiled_tests)
  endforeach()
endfunction()

function(peakbench_precompile_torch_tests)
  peakbench_unity(${ARGN})
  foreach(_target ${ARGN})
    target_compile_options(${_target} PRIVATE -fPIC)  # as the precompiled header was compiled
    target_precompile_headers(${_target} REUSE_FROM peakbench_sdk)
  endforeach()
endfunction()
