# peakbench_test_plugin(NAME [MODELS model ...] [STACKS stack ...] [DEVICES device ...] [EXPECT file] [OPTIONS ...])
#
# Two CTest tests of a plugin made by peakbench_add_plugin(NAME ...), which need no card:
#
#   NAME.bytes     every stack on every small model, on an emulated card: the outcome, the peaks and what they are made of, to the byte,
#                  as in the file of accepted figures
#   NAME.promise   the same on the CPU, one step after another: no case fails, and losses and parameters are what the manifests promise
#
# MODELS    as --model takes them. Without it: of a model's plugin each of its models as it is, so name one with options that make it
#           small; of a strategy's a small vision transformer and a small decoder.
# STACKS    as --strategy takes them. Without it: of a strategy's plugin each of its strategies, and what NAME.promise holds them
#           against; of a model's the baseline, and strategies that promise the same bits.
# DEVICES   of NAME.bytes; without it emulated:h100-80gb
# EXPECT    the accepted figures; without it NAME.expected.json beside the CMakeLists.txt. Keep the file with the sources.
# OPTIONS   more words for `peakbench run`: --batch 8
#
# A figure that differs fails the test, which prints both and how to accept what was measured:
#
#   PEAKBENCH_ACCEPT=1 ctest --test-dir BUILD -R '^NAME[.]bytes$'
set(_peakbench_test_script ${CMAKE_CURRENT_LIST_DIR}/plugin_test.cmake)
set(_peakbench_small_models "vit-b-16,layers=2,width=48,mlp=64,image=32" "qwen2.5-0.5b,layers=2,width=28,mlp=32,vocabulary=64")

# The ids in a manifest.
function(_peakbench_entries manifest ids)
  file(READ ${manifest} text)
  set(found)
  string(JSON count ERROR_VARIABLE wrong LENGTH "${text}" entries)
  if(wrong OR count EQUAL 0)
    set(${ids} "" PARENT_SCOPE)
    return()
  endif()
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON id ERROR_VARIABLE wrong GET "${text}" entries ${i} id)
    if(NOT wrong)
      list(APPEND found ${id})
    endif()
  endforeach()
  set(${ids} ${found} PARENT_SCOPE)
endfunction()

function(peakbench_test_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXPECT" "MODELS;STACKS;DEVICES;OPTIONS")
  if(NOT TARGET ${name} OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "peakbench_test_plugin(${name}): needs a plugin of peakbench_add_plugin ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_target_property(manifest ${name} PEAKBENCH_MANIFEST)
  file(READ ${manifest} text)
  # What is wrong with a manifest is said by the build, all of it: without one there is nothing to test.
  string(JSON kind ERROR_VARIABLE wrong GET "${text}" kind)
  if(wrong)
    return()
  endif()
  _peakbench_entries(${manifest} ids)
  set(models ${_peakbench_small_models})
  set(stacks ${ids})
  if(kind STREQUAL "model")
    set(models ${ids})
    set(stacks fused-in-backward checkpointing)
  endif()
  set(devices emulated:h100-80gb)
  foreach(list models stacks devices)
    string(TOUPPER ${list} upper)
    if(arg_${upper})
      set(${list} ${arg_${upper}})
    endif()
  endforeach()
  set(expect ${CMAKE_CURRENT_SOURCE_DIR}/${name}.expected.json)
  if(arg_EXPECT)
    get_filename_component(expect ${arg_EXPECT} ABSOLUTE)
  endif()
  foreach(test bytes promise)
    set(settings ${CMAKE_CURRENT_BINARY_DIR}/${name}.${test}.test.cmake)
    file(GENERATE OUTPUT ${settings} CONTENT "set(test ${test})
set(name [==[${name}]==])
set(program [==[$<TARGET_FILE_DIR:Peakbench::check-manifest>/peakbench]==])
set(plugins [==[$<TARGET_FILE_DIR:${name}>]==])
set(models [==[${models}]==])
set(stacks [==[${stacks}]==])
set(devices [==[${devices}]==])
set(options [==[${arg_OPTIONS}]==])
set(expect [==[${expect}]==])
set(build [==[${CMAKE_BINARY_DIR}]==])
set(out [==[${CMAKE_CURRENT_BINARY_DIR}/${name}.${test}]==])
")
    add_test(NAME ${name}.${test} COMMAND ${CMAKE_COMMAND} -D SETTINGS=${settings} -P ${_peakbench_test_script})
    set_tests_properties(${name}.${test} PROPERTIES TIMEOUT 600)
  endforeach()
endfunction()
