# What the component `worker` is made of; PeakbenchInstall.cmake includes it.
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
  DESTINATION ${_package} COMPONENT worker)

if(PEAKBENCH_CARRIED OR EXISTS ${PROJECT_SOURCE_DIR}/third_party)
  get_target_property(_benchmark benchmark::benchmark IMPORTED_LOCATION)
  file(REAL_PATH ${_benchmark} _benchmark_file)
  get_filename_component(_benchmark_name ${_benchmark} NAME)
  install(FILES ${_benchmark_file} DESTINATION lib RENAME ${_benchmark_name} COMPONENT worker)
endif()
