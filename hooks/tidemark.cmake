# tidemark.cmake: tests that fail when they exceed limits of memory.
#
#     include(tidemark)       # with its folder in CMAKE_MODULE_PATH, or by its path
#     tidemark_add_test(NAME parser COMMAND parser_test data.txt
#                       LIMITS --max-peak 10M --max-unreachable 0)
#
# The test is recorded, runs as ever, and is then checked (tidemark-check(1)); limits of
# tidemark.conf count too. COMMAND may name a target. TIDEMARK is the program, found in PATH; without
# it, which a message says, the test runs alone.
find_program(TIDEMARK tidemark HINTS "${CMAKE_CURRENT_LIST_DIR}/../../bin")
find_program(TIDEMARK_RUN_TEST tidemark-run-test
	HINTS "${CMAKE_CURRENT_LIST_DIR}" "${CMAKE_CURRENT_LIST_DIR}/../../bin")

function(tidemark_add_test)
	cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME;WORKING_DIRECTORY" "COMMAND;LIMITS")
	if(NOT test_NAME OR NOT test_COMMAND)
		message(FATAL_ERROR "tidemark_add_test needs NAME and COMMAND")
	endif()
	if(test_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "tidemark_add_test: what is ${test_UNPARSED_ARGUMENTS}?")
	endif()
	list(POP_FRONT test_COMMAND program)
	if(TARGET ${program})
		set(program "$<TARGET_FILE:${program}>")
	endif()
	set(where)
	if(test_WORKING_DIRECTORY)
		set(where WORKING_DIRECTORY "${test_WORKING_DIRECTORY}")
	endif()
	if(NOT TIDEMARK)
		message(STATUS "tidemark is not found: the limits of ${test_NAME} are not checked")
		add_test(NAME ${test_NAME} COMMAND ${program} ${test_COMMAND} ${where})
		return()
	endif()
	add_test(NAME ${test_NAME}
		COMMAND "${TIDEMARK_RUN_TEST}" ${test_LIMITS} -- "${program}" ${test_COMMAND} ${where})
	set_property(TEST ${test_NAME} APPEND PROPERTY ENVIRONMENT "TIDEMARK=${TIDEMARK}")
endfunction()
