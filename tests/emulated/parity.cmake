# Peakbench on an emulated card: against stock PyTorch on the same card (skipped without the oracle), what its results say,
# the comparison with a real card, what becomes of a case where this machine lacks something, and stock PyTorch's own snapshots.
foreach(_suite allocator outcomes fidelity host import)
  peakbench_python_test(emulated.${_suite} ${_suite}_test.py PROPERTIES TIMEOUT 900)
endforeach()
add_test(NAME emulated.parity COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/parity_test.py $<TARGET_FILE:peakbench>)
set_tests_properties(emulated.parity PROPERTIES LABELS emulated SKIP_RETURN_CODE 77 TIMEOUT 900 COST 300)

# The same of plugins that are not bundled: the examples that tests/parity builds, and what tests/worker plants.
add_test(NAME emulated.plugins_parity COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/parity_test.py $<TARGET_FILE:peakbench>
  --plugins $<TARGET_FILE_DIR:example_mezo> $<TARGET_FILE_DIR:planted_passes>)
set_tests_properties(emulated.plugins_parity PROPERTIES LABELS emulated SKIP_RETURN_CODE 77 TIMEOUT 900)

set_tests_properties(emulated.parity emulated.allocator emulated.plugins_parity PROPERTIES REQUIRED_FILES
  "${CMAKE_CURRENT_LIST_DIR}/parity_test.py;${CMAKE_CURRENT_LIST_DIR}/allocator_test.py;${CMAKE_CURRENT_LIST_DIR}/stock_cases.py;$<TARGET_FILE:example_mezo>;${PROJECT_SOURCE_DIR}/examples;$<TARGET_FILE:planted_passes>;${PEAKBENCH_TESTS_NEED_WORKER};${PEAKBENCH_TESTS_NEED_ORACLE};${PEAKBENCH_TESTS_NEED_EMULATION}")

# Every case that differs again, with what building left in stock PyTorch's allocator given back.
add_test(NAME emulated.parity_released
  COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/parity_test.py $<TARGET_FILE:peakbench> --released)
set_tests_properties(emulated.parity_released PROPERTIES LABELS nightly SKIP_RETURN_CODE 77 TIMEOUT 1800)
