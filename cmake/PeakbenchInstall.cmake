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
# PEAKBENCH_WORKER_ONLY it is a worker folder (docs/how-to/install.md), which says in worker.json what it is for, and holds
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

if(NOT PEAKBENCH_PROGRAM_ONLY)
  include(PeakbenchInstallWorker)
endif()

if(PEAKBENCH_WORKER_ONLY)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/worker.json.in ${PROJECT_BINARY_DIR}/worker.json @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/worker.json DESTINATION . COMPONENT worker)
  if(TARGET peakbench_values)
    install(TARGETS peakbench_values LIBRARY DESTINATION lib/peakbench/values COMPONENT worker)
  endif()
  if(TARGET peakbench_tracer)
    install(TARGETS peakbench_tracer LIBRARY DESTINATION lib/peakbench/tracer COMPONENT worker)
  endif()
  return()
endif()

# --- program -------------------------------------------------------------------------------------------

if(TARGET peakbench)
  install(TARGETS peakbench RUNTIME DESTINATION bin COMPONENT program)
endif()
install(DIRECTORY ${PEAKBENCH_EMULATOR_DIR}/ DESTINATION lib/peakbench/emulator COMPONENT program USE_SOURCE_PERMISSIONS OPTIONAL)

# Inside of traced and emulated programs.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/harness/recording/python/
  DESTINATION lib/peakbench/tracer COMPONENT program FILES_MATCHING PATTERN "*.py")
if(TARGET peakbench_tracer)
  install(TARGETS peakbench_tracer LIBRARY DESTINATION lib/peakbench/tracer COMPONENT program)
endif()
if(TARGET peakbench_tracer_source)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/peakbench/tracer/source DESTINATION lib/peakbench/tracer COMPONENT program)
endif()

# What a shell and `man` know of the commands, where they look for it.
set(_man ${PROJECT_BINARY_DIR}/share/man/man1/peakbench.1)
add_custom_command(OUTPUT ${_man}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share/man/man1
  COMMAND peakbench man > ${_man}
  DEPENDS peakbench COMMENT "Writing the manual page" VERBATIM)
add_custom_target(peakbench_man ALL DEPENDS ${_man})
set(_shells share)
if(SKBUILD_DATA_DIR)  # a wheel: the environment's share/, not the package's
  set(_shells ${SKBUILD_DATA_DIR}/share)
endif()
install(FILES ${_man} DESTINATION ${_shells}/man/man1 COMPONENT program)
set(_completion ${PROJECT_SOURCE_DIR}/templates/completion)
install(FILES ${_completion}/bash DESTINATION ${_shells}/bash-completion/completions COMPONENT program RENAME peakbench)
install(FILES ${_completion}/zsh DESTINATION ${_shells}/zsh/site-functions COMPONENT program RENAME _peakbench)
install(FILES ${_completion}/fish DESTINATION ${_shells}/fish/vendor_completions.d COMPONENT program RENAME peakbench.fish)

foreach(_folder templates suites)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder}/ DESTINATION share/peakbench/${_folder} COMPONENT program OPTIONAL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/harness/records/run.schema.json DESTINATION share/peakbench/schema COMPONENT program)

# The sources that a worker for the user's PyTorch is compiled from, with the libraries that they need.
if(PEAKBENCH_PROGRAM_ONLY)
  set(_sources ${PROJECT_BINARY_DIR}/sources)
  set(_licences ${PROJECT_BINARY_DIR}/licences)
  file(REMOVE_RECURSE ${_sources} ${_licences})
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/ci/wheel_sources ${_sources} ${_licences} COMMAND_ERROR_IS_FATAL ANY)
  install(DIRECTORY ${_sources}/ DESTINATION source COMPONENT program USE_SOURCE_PERMISSIONS)
  install(DIRECTORY ${_licences} DESTINATION share COMPONENT program)
endif()
