# The target `quickstart`: what suites/quickstart.toml needs, so that ci/quickstart has its first figures before the other
# strategies are built.
set(_suite ${CMAKE_CURRENT_SOURCE_DIR}/suites/quickstart.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_suite})
file(STRINGS ${_suite} _line REGEX "^strategies = ")
string(REGEX MATCHALL "[a-z][a-z0-9-]*[a-z0-9]" _strategies "${_line}")
list(POP_FRONT _strategies)   # the key
list(TRANSFORM _strategies REPLACE "-" "_")
list(REMOVE_ITEM _strategies ${PEAKBENCH_QUICKSTART_PLUGINS})
if(_strategies)
  message(FATAL_ERROR "${_suite}: PEAKBENCH_QUICKSTART_PLUGINS (CMakeLists.txt) lacks ${_strategies}")
endif()
get_property(_devices GLOBAL PROPERTY PEAKBENCH_DEVICE_MODULES)
add_custom_target(quickstart DEPENDS peakbench-quickstart peakbench-worker peakbench_stand_ins ${_devices}
  ${PEAKBENCH_QUICKSTART_PLUGINS})
