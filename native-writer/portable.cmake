# Target daqwriter_portable: portable/daqwriter, from the same objects as daqwriter, for machines that have glibc but not
# the other libraries (docs/adr/0007-portable-daqwriter.md). Debian has no libisal.a, so that ISA-L goes with it as
# portable/lib/libisal.so.2; where there is a libisal.a it is linked in like the others.
if(NOT DAQWRITER_SANITIZE STREQUAL "")
  return() # a sanitizer's own library is not for candidates
endif()
leave_out(daqwriter_portable aio uring numa deflate blkid z)
if(BENCH_WITHOUT_daqwriter_portable)
  return()
endif()
set(portable_libraries ${LIB_aio_archive} ${LIB_uring_archive} ${LIB_numa_archive} ${LIB_deflate_archive} ${LIB_blkid_archive} ${LIB_z_archive})
find_library(LIB_isal_static libisal.a)
if(LIB_isal_static)
  list(APPEND portable_libraries ${LIB_isal_static})
endif()

set(portable_directory ${CMAKE_CURRENT_BINARY_DIR}/portable)
add_executable(daqwriter_portable EXCLUDE_FROM_ALL src/cli/main.cpp)
add_dependencies(daqwriter_portable daqwriter_core)
set_target_properties(daqwriter_portable PROPERTIES OUTPUT_NAME daqwriter RUNTIME_OUTPUT_DIRECTORY ${portable_directory})
# The archive by its file and not by its target, whose interface would bring the shared libraries along.
target_include_directories(daqwriter_portable PRIVATE src)
target_compile_definitions(daqwriter_portable PRIVATE $<TARGET_PROPERTY:daqwriter_core,INTERFACE_COMPILE_DEFINITIONS>)
target_compile_options(daqwriter_portable PRIVATE $<TARGET_PROPERTY:daqwriter_core,INTERFACE_COMPILE_OPTIONS>)
target_link_libraries(daqwriter_portable PRIVATE
  $<TARGET_FILE:daqwriter_core> nlohmann_json::nlohmann_json CLI11::CLI11 Threads::Threads ${portable_libraries})
for_old_glibc(daqwriter_portable)
set_target_properties(daqwriter_portable PROPERTIES LINK_DEPENDS $<TARGET_FILE:daqwriter_core>)
if(NOT LIB_isal_static)
  file(REAL_PATH ${LIB_isal} isal_file)
  target_link_libraries(daqwriter_portable PRIVATE ${LIB_isal})
  set_target_properties(daqwriter_portable PROPERTIES BUILD_RPATH "$ORIGIN/lib")
  add_custom_command(TARGET daqwriter_portable POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory ${portable_directory}/lib
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${isal_file} ${portable_directory}/lib/libisal.so.2)
endif()
