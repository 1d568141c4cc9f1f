# Language level, warnings and sanitizers as one interface target; no global flags.
# On for the compiler whose warnings are known, so that every preset compiles alike and nothing is compiled twice.
set(_known_warnings OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(_known_warnings ON)
endif()
option(PEAKBENCH_WARNINGS_AS_ERRORS "Warnings end the build" ${_known_warnings})
set(PEAKBENCH_SANITIZE "" CACHE STRING "Sanitizers for torch-free targets, e.g. address,undefined")

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  message(FATAL_ERROR "Peakbench builds against the x86-64 LibTorch wheel; this machine is "
                      "${CMAKE_SYSTEM_PROCESSOR}.")
endif()

add_library(peakbench_options INTERFACE)
target_compile_features(peakbench_options INTERFACE cxx_std_20)
# GCC 12 sees overlaps and overflows in std::string where there are none (GCC bugs 105651, 105329); behind a precompiled header they
# are no longer taken for the library's own.
target_compile_options(peakbench_options INTERFACE -Wall -Wextra -Wno-unused-parameter
  "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>"
  # GCC collects its garbage from 128 MB on, a tenth of its time here; without, it takes 1.3 GB for the largest sources and not 1.2.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=600000>
  $<$<BOOL:${PEAKBENCH_WARNINGS_AS_ERRORS}>:-Werror>)

# Sanitizers are for the programs without torch: LibTorch's wheel is not built with them.
add_library(peakbench_sanitize INTERFACE)
if(PEAKBENCH_SANITIZE)
  target_compile_options(peakbench_sanitize INTERFACE -fsanitize=${PEAKBENCH_SANITIZE}
                         -fno-omit-frame-pointer)
  target_link_options(peakbench_sanitize INTERFACE -fsanitize=${PEAKBENCH_SANITIZE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(PEAKBENCH_PLUGIN_DIR ${CMAKE_BINARY_DIR}/lib/peakbench/plugins)
set(PEAKBENCH_EMULATOR_DIR ${CMAKE_BINARY_DIR}/lib/peakbench/emulator)

# A step's time is LibTorch's own, and what more than -Og adds to most of the rest is seen in no benchmark; -O1 takes a fourth longer to
# compile.
set(CMAKE_CXX_FLAGS_RELEASE "-Og -DNDEBUG")

# peakbench_optimise(TARGET...): what runs for every operator and allocation of a case, inside of the program that is looked at.
# They have no precompiled header: GCC 12 crashes over one that was compiled with less.
function(peakbench_optimise)
  foreach(_target ${ARGN})
    target_compile_options(${_target} PRIVATE $<$<CONFIG:Release>:-O2>)
  endforeach()
endfunction()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
# What a wheel's sources are compiled to is kept whole: nobody compiles them twice.
if(CCACHE_PROGRAM AND NOT EXISTS ${CMAKE_SOURCE_DIR}/third_party AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header is keyed by what it holds, not by when it was made; a second checkout hits too.
  set(_launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_launcher})
endif()
