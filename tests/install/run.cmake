# cmake -DBUILD=<build tree> -DSOURCE=<outside project> -DCXX=… -DFLAGS=… -P run.cmake
set(room ${BUILD}/outside)
file(REMOVE_RECURSE ${room})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${room}/prefix --component library
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${room}/build -DCMAKE_PREFIX_PATH=${room}/prefix
                        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${room}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${room}/build/outside COMMAND_ERROR_IS_FATAL ANY)
