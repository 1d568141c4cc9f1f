# The install tree: relocatable, found with find_package(Peakbench). Every place is relative to the program, which looks for its
# plugins and templates beside itself; so `lib`, and not a distribution's lib/ARCHITECTURE.
#
#   bin/                          peakbench, peakbench-worker, peakbench-check-manifest
#   include/peakbench/            the SDK's headers
#   lib/libpeakbench_sdk.so
#   lib/peakbench/                libpeakbench_cuda.so, plugins/, emulator/
#   lib/cmake/Peakbench/          the CMake package: Peakbench::sdk, peakbench_add_plugin()
#   share/peakbench/              templates, suites, schema
#   share/                        man/, and what bash, zsh and fish complete commands by
#
# Component `program` is what needs no LibTorch to be there: peakbench, emulator/ and share/. Component `worker` is the rest; with
# PEAKBENCH_WORKER_ONLY it is a worker folder (docs/install.md), which says in worker.json what it is for, and holds
# lib/peakbench/values/.
include(CMakePackageConfigHelpers)
set(_package lib/cmake/Peakbench)

# Where LibTorch is found from bin/ and lib/. A worker folder that is carried lies in site-packages/peakbench/workers/; elsewhere the
# program tells the loader (LD_LIBRARY_PATH).
set(_torch_lib ${PEAKBENCH_TORCH_DIR}/lib)
set(_torch_lib_below ${_torch_lib})
set(PEAKBENCH_PACKAGE_TORCH_DIR ${PEAKBENCH_TORCH_DIR})
if(PEAKBENCH_CARRIED)
  set(_torch_lib "$ORIGIN/../../../../torch/lib")
  set(_torch_lib_below "$ORIGIN/../../../../../torch/lib")
  set(PEAKBENCH_PACKAGE_TORCH_DIR "\${PACKAGE_PREFIX_DIR}/../../../torch")
endif()

# --- worker --------------------------------------------------------------------------------------------

# What peakbench_add_plugin checks manifests with.
install(TARGETS peakbench-check-manifest EXPORT PeakbenchTargets RUNTIME DESTINATION bin COMPONENT worker)
if(TARGET peakbench-worker)
  install(TARGETS peakbench-worker RUNTIME DESTINATION bin COMPONENT worker)
  set_target_properties(peakbench-worker PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${_torch_lib}")
endif()
# The modules of devices, which the worker opens where a case needs one: CUDA's is for real and emulated cards.
get_property(_device_modules GLOBAL PROPERTY PEAKBENCH_DEVICE_MODULES)
if(_device_modules)
  install(TARGETS ${_device_modules} LIBRARY DESTINATION lib/peakbench COMPONENT worker)
  set_target_properties(${_device_modules} PROPERTIES INSTALL_RPATH "$ORIGIN/..;${_torch_lib_below}")
endif()

install(TARGETS peakbench_sdk EXPORT PeakbenchTargets LIBRARY DESTINATION lib COMPONENT worker INCLUDES DESTINATION include)
set_target_properties(peakbench_sdk PROPERTIES INSTALL_RPATH "${_torch_lib}")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/harness/sdk/include/peakbench DESTINATION include COMPONENT worker)

get_property(_plugins GLOBAL PROPERTY PEAKBENCH_PLUGINS)
install(TARGETS ${_plugins} LIBRARY DESTINATION lib/peakbench/plugins COMPONENT worker)
# A plugin is told from another build of it by its bytes, so they name no place of this machine, before the installation as after it; who
# loads a plugin has loaded LibTorch.
set_target_properties(${_plugins} PROPERTIES INSTALL_RPATH "$ORIGIN/../.." BUILD_WITH_INSTALL_RPATH ON)

install(EXPORT PeakbenchTargets NAMESPACE Peakbench:: DESTINATION ${_package} COMPONENT worker)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/PeakbenchConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PeakbenchConfig.cmake INSTALL_DESTINATION ${_package})
# Plugins are held to the SDK's revision and LibTorch's build by their stamp; the version says which Peakbench this is.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PeakbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/PeakbenchConfig.cmake
  ${PROJECT_BINARY_DIR}/PeakbenchConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/PeakbenchLibTorch.cmake
  ${PROJECT_SOURCE_DIR}/cmake/libtorch_releases.txt
  ${PROJECT_SOURCE_DIR}/cmake/PeakbenchPlugin.cmake
  ${PROJECT_SOURCE_DIR}/cmake/PeakbenchTest.cmake
  ${PROJECT_SOURCE_DIR}/cmake/plugin_section.cpp.in
  ${PROJECT_SOURCE_DIR}/cmake/plugin_test.cmake
  DESTINATION ${_package} COMPONENT worker)

if(PEAKBENCH_CARRIED OR EXISTS ${PROJECT_SOURCE_DIR}/third_party)
  get_target_property(_benchmark benchmark::benchmark IMPORTED_LOCATION)
  file(REAL_PATH ${_benchmark} _benchmark_file)
  get_filename_component(_benchmark_name ${_benchmark} NAME)
  install(FILES ${_benchmark_file} DESTINATION lib RENAME ${_benchmark_name} COMPONENT worker)
endif()

if(PEAKBENCH_WORKER_ONLY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/worker.json.in ${PROJECT_BINARY_DIR}/worker.json @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/worker.json DESTINATION . COMPONENT worker)
  if(TARGET peakbench_values)
    install(TARGETS peakbench_values LIBRARY DESTINATION lib/peakbench/values COMPONENT worker)
    install(TARGETS peakbench_tracer LIBRARY DESTINATION lib/peakbench/tracer COMPONENT worker)
  endif()
  return()
endif()

# --- program -------------------------------------------------------------------------------------------

if(TARGET peakbench)
  install(TARGETS peakbench RUNTIME DESTINATION bin COMPONENT program)
endif()
install(DIRECTORY ${PEAKBENCH_EMULATOR_DIR}/ DESTINATION lib/peakbench/emulator COMPONENT program USE_SOURCE_PERMISSIONS OPTIONAL)

# Inside of traced programs.
install(FILES ${PROJECT_SOURCE_DIR}/harness/tracer/python/sitecustomize.py ${PROJECT_SOURCE_DIR}/harness/tracer/python/peakbench_tracing.py
  DESTINATION lib/peakbench/tracer COMPONENT program)
if(TARGET peakbench_tracer)
  install(TARGETS peakbench_tracer LIBRARY DESTINATION lib/peakbench/tracer COMPONENT program)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/peakbench/tracer/source DESTINATION lib/peakbench/tracer COMPONENT program)
endif()

# What a shell and `man` know of the commands, where they look for it.
set(_man ${PROJECT_BINARY_DIR}/share/man/man1/peakbench.1)
add_custom_command(OUTPUT ${_man}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share/man/man1
  COMMAND peakbench man > ${_man}
  DEPENDS peakbench COMMENT "Writing the manual page" VERBATIM)
add_custom_target(peakbench_man ALL DEPENDS ${_man})
install(FILES ${_man} DESTINATION share/man/man1 COMPONENT program)
set(_completion ${PROJECT_SOURCE_DIR}/templates/completion)
install(FILES ${_completion}/bash DESTINATION share/bash-completion/completions COMPONENT program RENAME peakbench)
install(FILES ${_completion}/zsh DESTINATION share/zsh/site-functions COMPONENT program RENAME _peakbench)
install(FILES ${_completion}/fish DESTINATION share/fish/vendor_completions.d COMPONENT program RENAME peakbench.fish)

foreach(_folder templates suites)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder}/ DESTINATION share/peakbench/${_folder} COMPONENT program OPTIONAL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/harness/result/run.schema.json DESTINATION share/peakbench/schema COMPONENT program)

# Workers for the releases of PyTorch that are carried along, and the sources that `peakbench workers build` compiles for another: ci/wheel
# makes that folder.
if(PEAKBENCH_CARRIED_FILES)
  install(DIRECTORY ${PEAKBENCH_CARRIED_FILES}/ DESTINATION . COMPONENT program USE_SOURCE_PERMISSIONS)
endif()
