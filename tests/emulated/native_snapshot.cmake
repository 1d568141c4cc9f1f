# PyTorch's own snapshot of a process against our trace of it, on the emulated card; on a real one: tests/gpu.
add_executable(native_snapshot_test native_snapshot_test.cpp)
target_link_libraries(native_snapshot_test PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,peakbench_device> libtorch::c10_cuda peakbench_options GTest::gtest)
target_include_directories(native_snapshot_test SYSTEM PRIVATE ${PEAKBENCH_CUDA_INCLUDE})
peakbench_precompile_torch_tests(native_snapshot_test)
target_link_options(native_snapshot_test PRIVATE -Wl,--allow-shlib-undefined)
set_target_properties(native_snapshot_test PROPERTIES ENABLE_EXPORTS ON)  # for the CUDA module
add_dependencies(native_snapshot_test peakbench_cuda)

foreach(_setting "" expandable_segments)
  string(REPLACE "expandable" ".expandable" _suffix "${_setting}")
  add_test(NAME emulated.native_snapshot${_suffix} COMMAND $<TARGET_FILE:peakbench> emulate --card h100-80gb --
    $<TARGET_FILE:native_snapshot_test> emulated:h100-80gb ${_setting})
  set_tests_properties(emulated.native_snapshot${_suffix} PROPERTIES LABELS emulated)
endforeach()
