# peakbench_test_plugin(NAME [MODELS model ...] [STACKS stack ...] [DEVICES device ...] [EXPECT file] [OPTIONS ...])
#
# Two CTest tests of a plugin made by peakbench_add_plugin(NAME ...). Neither needs a card.
#
#   NAME.bytes     peakbench check --expect: peaks and bytes by category on an emulated card equal the accepted figures
#   NAME.promise   peakbench check --promise: on the CPU no case fails, and losses and parameters are what the manifests promise
#
# MODELS    as --model takes them. Default: each model of a model's plugin; two small models for strategies.
# STACKS    as --strategy takes them. Default: each strategy of the plugin; strategies that promise the same bits for a model's plugin.
# DEVICES   of NAME.bytes. Default: emulated:h100-80gb
# EXPECT    the accepted figures. Default: NAME.expected.json beside the CMakeLists.txt. Keep the file with the sources.
# OPTIONS   options of `peakbench run`, in place of those that `peakbench check` gives it: --batch 8
#
# To accept what was measured: PEAKBENCH_ACCEPT=1 ctest --test-dir BUILD -R '^NAME[.]bytes$'
get_filename_component(_peakbench_program ${CMAKE_CURRENT_LIST_DIR}/../../../bin/peakbench ABSOLUTE)
if(NOT EXISTS ${_peakbench_program})
  set(_peakbench_program peakbench)  # A worker's folder has no program; CTest searches PATH.
endif()

function(peakbench_test_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXPECT" "MODELS;STACKS;DEVICES;OPTIONS")
  if(NOT TARGET ${name} OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "peakbench_test_plugin(${name}): needs a plugin of peakbench_add_plugin ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_EXPECT)
    set(arg_EXPECT ${name}.expected.json)
  endif()
  get_filename_component(expect ${arg_EXPECT} ABSOLUTE)
  list(TRANSFORM arg_MODELS PREPEND --model=)
  list(TRANSFORM arg_STACKS PREPEND --strategy=)
  list(TRANSFORM arg_DEVICES PREPEND --device=)
  set(check ${_peakbench_program} check $<TARGET_FILE:${name}> ${arg_MODELS} --quiet --overwrite --out ${CMAKE_CURRENT_BINARY_DIR}/${name}.check)
  add_test(NAME ${name}.bytes COMMAND ${check} --expect ${expect} -- ${arg_STACKS} ${arg_OPTIONS} ${arg_DEVICES})
  add_test(NAME ${name}.promise COMMAND ${check} --promise -- ${arg_STACKS} ${arg_OPTIONS})
  set_tests_properties(${name}.bytes ${name}.promise PROPERTIES TIMEOUT 600)
endfunction()
