# The sources of a library of ours that is loaded into programs, laid out for the launcher to compile them against another PyTorch
# (harness/host/compiled_library.h): in one piece, which is quicker.
#
#   peakbench_lay_out_sources(TARGET FOLDER WHOLE FROM ROOT... FILES FILE...)
#
# TARGET copies each FILE from the first ROOT that has it to FOLDER/FILE; FOLDER/WHOLE includes those that end in .cpp, in their order.
function(peakbench_lay_out_sources target folder whole)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "FROM;FILES")
  set(_copied ${folder}/${whole})
  set(_text "")
  foreach(_file ${arg_FILES})
    unset(_original)
    foreach(_root ${arg_FROM})
      if(NOT DEFINED _original AND EXISTS ${_root}/${_file})
        set(_original ${_root}/${_file})
      endif()
    endforeach()
    if(NOT DEFINED _original)
      message(FATAL_ERROR "${target}: there is no ${_file} in ${arg_FROM}")
    endif()
    add_custom_command(OUTPUT ${folder}/${_file} DEPENDS ${_original} COMMAND ${CMAKE_COMMAND} -E copy ${_original} ${folder}/${_file})
    list(APPEND _copied ${folder}/${_file})
    if(_file MATCHES "cpp$")
      string(APPEND _text "#include \"${_file}\"\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/${whole} CONTENT "${_text}" @ONLY)
  add_custom_target(${target} DEPENDS ${_copied})
endfunction()
