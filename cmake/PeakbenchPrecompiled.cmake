# The headers that most sources without torch parse, compiled once: JSON and text formatting cost more than what uses them.
#
#   peakbench_precompile(TARGET...)         rooms
#   peakbench_precompile_tests(TARGET...)   GoogleTest beside them; not optimised, as nothing times a test
add_library(peakbench_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(peakbench_precompiled PRIVATE peakbench_options peakbench_sanitize fmt::fmt nlohmann_json::nlohmann_json)
set_target_properties(peakbench_precompiled PROPERTIES POSITION_INDEPENDENT_CODE ON)
set(_peakbench_common <algorithm> <filesystem> <fmt/format.h> <fstream> <functional> <map> <memory> <nlohmann/json.hpp> <optional>
    <string> <vector>)
target_precompile_headers(peakbench_precompiled PRIVATE ${_peakbench_common})

function(peakbench_precompile)
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
  foreach(_target ${ARGN})
    target_link_libraries(${_target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json peakbench_sanitize GTest::gmock)
    target_compile_options(${_target} PRIVATE -O0 -fPIC)  # as the precompiled header was compiled
    target_precompile_headers(${_target} REUSE_FROM peakbench_precompiled_tests)
  endforeach()
endfunction()
