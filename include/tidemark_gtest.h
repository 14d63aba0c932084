/* tidemark_gtest.h: each test of Google Test is a phase of the recording.
 *
 *     int main(int argc, char **argv)
 *     {
 *             ::testing::InitGoogleTest(&argc, argv);
 *             tidemark_gtest_listen();
 *             return RUN_ALL_TESTS();
 *     }
 *
 * The phase is called as the test is, so that
 *
 *     tidemark check t.tide --from mark:Suite.Test.begin --to mark:Suite.Test.end --max-peak 1M
 *
 * limits one test.
 *
 * Copyright 2026 the tidemark authors. MIT License: https://opensource.org/license/mit
 * SPDX-License-Identifier: MIT
 */
#ifndef TIDEMARK_GTEST_H
#define TIDEMARK_GTEST_H

#include "tidemark.h"

#include <gtest/gtest.h>

#include <string>

class tidemark_gtest_listener : public ::testing::EmptyTestEventListener
{
	std::string name;

	void OnTestStart(const ::testing::TestInfo &test) override
	{
		name = std::string(test.test_suite_name()) + "." + test.name();
		tidemark_phase_begin(name.c_str());
	}

	void OnTestEnd(const ::testing::TestInfo &) override
	{
		tidemark_phase_end(name.c_str());
	}
};

/* After InitGoogleTest; Google Test owns the listener. */
inline void tidemark_gtest_listen()
{
	::testing::UnitTest::GetInstance()->listeners().Append(new tidemark_gtest_listener);
}

#endif
