# for_old_glibc(TARGET): links a program of candidates so that it asks for no newer glibc than OLD_GLIBC, whatever this system's is
# (docs/adr/0007-portable-daqwriter.md). libgcc_s stays shared: glibc's own packages bring it everywhere, and its unwinder fits that glibc.
set(OLD_GLIBC 2.31) # Debian 11; EL 9 has 2.34, Ubuntu 22.04 2.35

if(DAQWRITER_SANITIZE STREQUAL "")
  set(old_glibc_directory ${CMAKE_CURRENT_BINARY_DIR}/old_glibc)
  execute_process(COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/old_glibc/stubs.sh ${old_glibc_directory} ${OLD_GLIBC} ${CMAKE_CXX_COMPILER}
    COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS old_glibc/stubs.sh)
  add_library(old_glibc_shims OBJECT old_glibc/shims.cpp)
  target_include_directories(old_glibc_shims PRIVATE ${old_glibc_directory})
endif()

function(for_old_glibc target)
  target_link_options(${target} PRIVATE -static-libstdc++)
  if(NOT TARGET old_glibc_shims)
    return() # a sanitizer's own library is not for candidates
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:old_glibc_shims>)
  target_link_options(${target} PRIVATE -L${old_glibc_directory} -Wl,--wrap=__libc_start_main
    # What this system's libgcc_s asks of its own glibc is no concern of the program's.
    -Wl,--allow-shlib-undefined
    # Before libc, in which an older glibc has functions of the same names that do nothing.
    -Wl,--push-state,--no-as-needed,${old_glibc_directory}/libpthread.so.0,${old_glibc_directory}/libdl.so.2,--pop-state)
endfunction()
