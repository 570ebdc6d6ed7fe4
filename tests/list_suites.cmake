# Asks a gtest program for its suites and writes them down as ctests. Run after each link of the program:
# cmake -DPROGRAM=… -DFOLDER=… -DLIST_FILE=… -P list_suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${listing}")

set(text "")
foreach(line ${lines})
  if(NOT line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")  # "Suite." or "Instance/Suite." or "Suite/0.  # TypeParam = …"
    continue()
  endif()
  set(suite ${CMAKE_MATCH_1})
  if(suite MATCHES "^MpiSession")  # needs a job around it: CMakeLists.txt runs it under mpirun
    continue()
  endif()
  set(label quick)
  set(seconds 900)
  if(suite MATCHES "(^|/)(Full|Mpi|Gpu|Soak)[A-Z0-9_]")
    string(TOLOWER ${CMAKE_MATCH_2} label)
    set(seconds 1800)
  endif()
  if(label STREQUAL "soak")
    set(seconds 7200)
  endif()
  set(more "")
  if(label STREQUAL "mpi")  # Open MPI keeps memory to the end of a process
    set(more " ENVIRONMENT ASAN_OPTIONS=detect_leaks=0")
  endif()
  string(APPEND text "add_test([[${FOLDER}.${suite}]] [[${PROGRAM}]] [[--gtest_filter=${suite}.*]] --gtest_brief=1)\n"
         "set_tests_properties([[${FOLDER}.${suite}]] PROPERTIES LABELS ${label} TIMEOUT ${seconds}${more})\n")
endforeach()
file(WRITE ${LIST_FILE} "${text}")
