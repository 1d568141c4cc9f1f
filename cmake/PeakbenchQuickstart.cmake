# The target `quickstart`: what suites/quickstart.toml needs, so that ci/quickstart has its first figures before the other
# strategies are built.
get_property(_devices GLOBAL PROPERTY PEAKBENCH_DEVICE_MODULES)
add_custom_target(quickstart DEPENDS peakbench-quickstart peakbench-worker peakbench_stand_ins ${_devices}
  ${PEAKBENCH_QUICKSTART_PLUGINS})
