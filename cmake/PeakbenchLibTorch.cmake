# The LibTorch in use, as imported targets of our own: find_package(Torch) of a CUDA build asks for
# nvcc and the toolkit even for CPU code.
#
#   PEAKBENCH_TORCH_DIR   the folder `torch` of an installed wheel (holds include/ and lib/);
#                         a variable of CMake or of the environment. ci/libtorch finds or installs one.
#
# Which releases Peakbench itself builds with is in libtorch_releases.txt; the first of them is the default. A worker alone
# (PEAKBENCH_WORKER_ONLY) is tried with any.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/libtorch_releases.txt _releases REGEX "^[0-9]")
list(TRANSFORM _releases REPLACE " .*" "")
list(GET _releases 0 _default_release)

# The program alone needs none: what it says of its own build is that of the default release.
if(PEAKBENCH_PROGRAM_ONLY)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/libtorch_releases.txt _facts REGEX "^${_default_release} ")
  string(REGEX MATCHALL "[^ ]+" _facts "${_facts}")
  list(GET _facts 1 PEAKBENCH_LIBTORCH_CUDA)
  list(GET _facts 2 PEAKBENCH_LIBTORCH_GIT_VERSION)
  string(REPLACE "." "" _local "${PEAKBENCH_LIBTORCH_CUDA}")
  set(PEAKBENCH_LIBTORCH_VERSION ${_default_release}+cu${_local})
  return()
endif()

if(NOT PEAKBENCH_TORCH_DIR AND DEFINED ENV{PEAKBENCH_TORCH_DIR})
  set(PEAKBENCH_TORCH_DIR $ENV{PEAKBENCH_TORCH_DIR})
endif()
if(NOT PEAKBENCH_TORCH_DIR)
  set(_cache ${CMAKE_SOURCE_DIR}/.cache)
  if(DEFINED ENV{PEAKBENCH_CACHE})
    set(_cache $ENV{PEAKBENCH_CACHE})
  endif()
  set(PEAKBENCH_TORCH_DIR ${_cache}/torch-${_default_release}/site-packages/torch)
endif()
set(PEAKBENCH_TORCH_DIR ${PEAKBENCH_TORCH_DIR} CACHE PATH "LibTorch: the folder with include/ and lib/")

if(NOT EXISTS ${PEAKBENCH_TORCH_DIR}/version.py)
  message(FATAL_ERROR "No LibTorch in ${PEAKBENCH_TORCH_DIR}.\nRun ci/libtorch, which installs "
    "${_default_release} from the wheel, or set PEAKBENCH_TORCH_DIR to the folder `torch` of yours.")
endif()

file(READ ${PEAKBENCH_TORCH_DIR}/version.py _version_py)
foreach(_pair "VERSION=__version__ = '([^']+)'" "GIT_VERSION=git_version = '([^']+)'" "CUDA=cuda: [^=]*= '([^']+)'")
  string(REGEX REPLACE "=.*" "" _name "${_pair}")
  string(REGEX REPLACE "^[A-Z_]+=" "" _pattern "${_pair}")
  set(PEAKBENCH_LIBTORCH_${_name} none)
  if(_version_py MATCHES "${_pattern}")
    set(PEAKBENCH_LIBTORCH_${_name} ${CMAKE_MATCH_1})
  endif()
endforeach()
string(REGEX REPLACE "\\+.*" "" _release ${PEAKBENCH_LIBTORCH_VERSION})
if(PROJECT_NAME STREQUAL Peakbench AND NOT PEAKBENCH_WORKER_ONLY AND NOT _release IN_LIST _releases)
  list(JOIN _releases ", " _releases)
  message(FATAL_ERROR "LibTorch in ${PEAKBENCH_TORCH_DIR} is ${PEAKBENCH_LIBTORCH_VERSION}; "
                      "Peakbench builds with one of ${_releases}.")
endif()
message(STATUS "LibTorch ${PEAKBENCH_LIBTORCH_VERSION} in ${PEAKBENCH_TORCH_DIR}")

function(_peakbench_import name library)
  add_library(libtorch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::${name} PROPERTIES
    IMPORTED_LOCATION ${PEAKBENCH_TORCH_DIR}/lib/${library}
    INTERFACE_INCLUDE_DIRECTORIES
      "${PEAKBENCH_TORCH_DIR}/include;${PEAKBENCH_TORCH_DIR}/include/torch/csrc/api/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
      "${PEAKBENCH_TORCH_DIR}/include;${PEAKBENCH_TORCH_DIR}/include/torch/csrc/api/include")
endfunction()
_peakbench_import(c10 libc10.so)
_peakbench_import(cpu libtorch_cpu.so)
_peakbench_import(c10_cuda libc10_cuda.so)
_peakbench_import(cuda libtorch_cuda.so)
target_link_libraries(libtorch::cpu INTERFACE libtorch::c10)
# libtorch_cpu.so needs libcudart and libcupti, which only the loader finds (its RPATH).
target_link_options(libtorch::cpu INTERFACE -Wl,--allow-shlib-undefined)
