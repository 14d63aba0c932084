#include "tidemark_gtest.h"

TEST(Small, Within)
{
	delete[] new char[1000];
}

TEST(Small, Beyond)
{
	delete[] new char[1000000];
}

int main(int argc, char **argv)
{
	::testing::InitGoogleTest(&argc, argv);
	tidemark_gtest_listen();
	return RUN_ALL_TESTS();
}
