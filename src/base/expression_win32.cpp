// The C library of Windows has no regular expressions; the C++ one has.
#include <cstdio>
#include <cstring>
#include <regex>

extern "C" {
struct expression;
struct expression *expression_new(const char *text, char *why, size_t size);
void expression_free(struct expression *expression);
bool expression_matches(const struct expression *expression, const char *text);
}

struct expression {
	std::regex regex;
};

struct expression *expression_new(const char *text, char *why, size_t size)
{
	try {
		// Polynomial: neither the time nor the stack that it takes is the text's choice.
		auto flags = std::regex::extended | std::regex::nosubs |
			     std::regex_constants::__polynomial;

		return new expression{ std::regex(text, flags) };
	} catch (const std::exception &problem) {
		std::snprintf(why, size, "%s", problem.what());
		return nullptr;
	}
}

void expression_free(struct expression *expression)
{
	delete expression;
}

bool expression_matches(const struct expression *expression, const char *text)
{
	try {
		return std::regex_search(text, expression->regex);
	} catch (const std::exception &) {
		return false;
	}
}
