# peakbench_add_plugin(NAME MANIFEST plugin.json SOURCES a.cpp ... [LIBRARIES ...] [PCH])
#
# A strategy or a family of models as a shared library NAME.so. The manifest and the build stamp go into an ELF
# section of their own, `.peakbench`, which `peakbench` reads without running any plugin code. A wrong manifest ends
# the build with every mistake in it. The same function serves this repository and, from the installed package,
# everyone else's. PCH: the sources share a precompiled header of LibTorch and the SDK with every other plugin of the
# project that asks for it. It takes as long as two sources, and a source with it a third of its time.
set(PEAKBENCH_SDK_REVISION 6)

# The C++ ABI of this compiler and its flags, for the stamp. LibTorch's wheel has the first.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
#include <string>
#if !defined(__GLIBCXX__) || !_GLIBCXX_USE_CXX11_ABI
#error another ABI
#endif
int main() {}" PEAKBENCH_HAS_CXX11_ABI)
set(PEAKBENCH_CXX_ABI "${CMAKE_CXX_COMPILER_ID} without libstdc++ cxx11")
if(PEAKBENCH_HAS_CXX11_ABI)
  set(PEAKBENCH_CXX_ABI "libstdc++ cxx11")
endif()

set(_peakbench_plugin_template ${CMAKE_CURRENT_LIST_DIR}/plugin_section.cpp.in)

# One precompiled header for the plugins of a project that ask for it: LibTorch's headers and the SDK's are most of what a small source
# takes to compile.
function(_peakbench_precompile_plugin name)
  if(NOT TARGET peakbench_plugin_headers)
    # Empty: a precompiled header belongs to a target, and a target has a source.
    set(_source ${CMAKE_BINARY_DIR}/peakbench_plugin_headers.cpp)
    file(CONFIGURE OUTPUT ${_source} CONTENT "")
    add_library(peakbench_plugin_headers OBJECT EXCLUDE_FROM_ALL ${_source})
    target_link_libraries(peakbench_plugin_headers PRIVATE Peakbench::sdk)
    target_compile_features(peakbench_plugin_headers PRIVATE cxx_std_20)
    set_target_properties(peakbench_plugin_headers PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
    target_precompile_headers(peakbench_plugin_headers PRIVATE
      <algorithm> <functional> <map> <memory> <string> <vector> <ATen/ATen.h> <peakbench/plugin.h> <peakbench/language_model.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM peakbench_plugin_headers)
endfunction()

function(peakbench_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PCH" "MANIFEST" "SOURCES;LIBRARIES")
  if(NOT arg_MANIFEST OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "peakbench_add_plugin(${name}): needs MANIFEST file and SOURCES files ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_filename_component(_manifest ${arg_MANIFEST} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_manifest})
  file(READ ${_manifest} _text)
  set(PEAKBENCH_SECTION_JSON ${CMAKE_CURRENT_BINARY_DIR}/${name}.peakbench.json)
  file(CONFIGURE OUTPUT ${PEAKBENCH_SECTION_JSON} @ONLY CONTENT [[{
"stamp": {"sdk_revision": @PEAKBENCH_SDK_REVISION@, "libtorch_version": "@PEAKBENCH_LIBTORCH_VERSION@",
 "libtorch_git_version": "@PEAKBENCH_LIBTORCH_GIT_VERSION@", "libtorch_cuda": "@PEAKBENCH_LIBTORCH_CUDA@",
 "cxx_abi": "@PEAKBENCH_CXX_ABI@"},
"manifest": @_text@
}
]])
  set(_section ${CMAKE_CURRENT_BINARY_DIR}/${name}.section.cpp)
  configure_file(${_peakbench_plugin_template} ${_section} @ONLY)
  # By the rules that `peakbench` reads it by, before anything is compiled.
  set(_checked ${CMAKE_CURRENT_BINARY_DIR}/${name}.manifest.checked)
  add_custom_command(OUTPUT ${_checked}
    COMMAND Peakbench::check-manifest ${_manifest}
    COMMAND ${CMAKE_COMMAND} -E touch ${_checked}
    DEPENDS ${_manifest} $<TARGET_FILE:Peakbench::check-manifest>
    COMMENT "Checking ${_manifest}" VERBATIM)
  set_source_files_properties(${_section} PROPERTIES
    OBJECT_DEPENDS "${PEAKBENCH_SECTION_JSON};${_checked}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

  add_library(${name} MODULE ${arg_SOURCES} ${_section} ${_checked})
  target_link_libraries(${name} PRIVATE Peakbench::sdk ${arg_LIBRARIES})
  if(TARGET peakbench_options)
    target_link_libraries(${name} PRIVATE peakbench_options)
    target_precompile_headers(${name} REUSE_FROM peakbench_sdk)
    peakbench_unity(${name})
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PEAKBENCH_PLUGIN_DIR})
    set_property(GLOBAL APPEND PROPERTY PEAKBENCH_PLUGINS ${name})
  else()
    # A forgotten `return` is undefined: a crash, or worse, a figure.
    target_compile_options(${name} PRIVATE -Werror=return-type)
    if(arg_PCH)
      _peakbench_precompile_plugin(${name})
    endif()
  endif()
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
endfunction()
