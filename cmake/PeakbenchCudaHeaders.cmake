# The headers of the CUDA runtime and driver that LibTorch's own include: from the small package that pip installs beside it, or a CUDA
# Toolkit. Sets PEAKBENCH_CUDA_INCLUDE, PEAKBENCH_CUDA_VERSION (13000) and PEAKBENCH_CUDA_MAJOR.
if(PEAKBENCH_TORCH_DIR)
  get_filename_component(_site ${PEAKBENCH_TORCH_DIR} DIRECTORY)
endif()
# The packages that pip brings for a build (pyproject.toml) lie below these, and CMake looks in their include/ alone.
list(TRANSFORM CMAKE_PREFIX_PATH APPEND /nvidia/cu13/include OUTPUT_VARIABLE _of_the_build)
find_path(PEAKBENCH_CUDA_INCLUDE cuda_runtime_api.h
  HINTS ${_site}/nvidia/cu13/include ${_site}/nvidia/cuda_runtime/include ${_of_the_build} $ENV{CUDA_HOME}/include
  PATHS /usr/local/cuda/include
  DOC "Folder of cuda.h and cuda_runtime_api.h (nvidia-cuda-runtime, or a CUDA Toolkit)")
if(NOT PEAKBENCH_CUDA_INCLUDE)
  message(FATAL_ERROR "cuda_runtime_api.h was not found. pip's package nvidia-cuda-runtime brings it (ci/libtorch installs it beside "
    "LibTorch); or set PEAKBENCH_CUDA_INCLUDE to the include folder of a CUDA Toolkit.")
endif()
file(STRINGS ${PEAKBENCH_CUDA_INCLUDE}/cuda.h _define REGEX "^#define CUDA_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+$" PEAKBENCH_CUDA_VERSION "${_define}")
string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "\\1" PEAKBENCH_CUDA_MAJOR "${PEAKBENCH_LIBTORCH_CUDA}")
math(EXPR _header_cuda_major "${PEAKBENCH_CUDA_VERSION} / 1000")
if(NOT _header_cuda_major EQUAL PEAKBENCH_CUDA_MAJOR)
  message(FATAL_ERROR "LibTorch is built for CUDA ${PEAKBENCH_LIBTORCH_CUDA}, the headers in ${PEAKBENCH_CUDA_INCLUDE} are "
    "of CUDA ${PEAKBENCH_CUDA_VERSION}: those of the same major version are needed.")
endif()
message(STATUS "CUDA headers in ${PEAKBENCH_CUDA_INCLUDE}")
