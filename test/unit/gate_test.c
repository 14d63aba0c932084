// Who may ask the viewer: what view/gate.h promises.
#include "test/test.h"
#include "view/gate.h"

#include <string.h>

static const uint8_t bytes[GATE_TOKEN_BYTES] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
						 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
static const char token[] = "Bearer 00112233445566778899aabbccddeeff";

static struct gate_request good(void)
{
	return (struct gate_request){
		.method = "GET",
		.path = "/api/view",
		.length = 9,
		.host = "127.0.0.1:8123",
		.authorization = token,
	};
}

static enum refusal check_at(uint16_t port, const struct gate_request *request)
{
	struct gate gate;
	const char *why = NULL;
	enum refusal refusal;

	gate_init(&gate, port, bytes);
	refusal = gate_check(&gate, request, &why);
	CHECK_EQ(refusal != REFUSAL_NONE, why != NULL);
	return refusal;
}

static enum refusal check(const struct gate_request *request)
{
	return check_at(8123, request);
}

TEST(gate_knows_the_port_that_is_left_out)
{
	struct gate_request request = good();

	request.host = "localhost";
	request.origin = "http://localhost";
	CHECK_EQ(REFUSAL_NONE, check_at(80, &request));
	CHECK(check_at(8080, &request) != REFUSAL_NONE);
	request.host = "127.0.0.1:80";
	CHECK_EQ(REFUSAL_NONE, check_at(80, &request));
	request.host = "localhost.evil.example";
	CHECK(check_at(80, &request) != REFUSAL_NONE);
}

TEST(gate_lets_in_who_has_the_token)
{
	struct gate_request request = good();

	CHECK_EQ(REFUSAL_NONE, check(&request));
	request.host = "localhost:8123";
	request.origin = "http://localhost:8123";
	request.site = "same-origin";
	request.method = "HEAD";
	CHECK_EQ(REFUSAL_NONE, check(&request));
}

TEST(gate_refuses_every_token_that_differs_in_one_digit)
{
	char text[sizeof token];
	struct gate_request request = good();

	for (size_t i = 0; i < sizeof token - 1; i++) {
		memcpy(text, token, sizeof token);
		text[i] ^= 1;
		request.authorization = text;
		CHECK_EQ(REFUSAL_TOKEN, check(&request));
		text[i] = '\0';
		CHECK_EQ(REFUSAL_TOKEN, check(&request));
	}
	request.authorization = NULL;
	CHECK_EQ(REFUSAL_TOKEN, check(&request));
}

TEST(gate_gives_the_page_without_a_token)
{
	struct gate_request request = good();

	request.authorization = NULL;
	request.path = "/";
	CHECK_EQ(REFUSAL_NONE, check(&request));
	request.site = "cross-site";
	CHECK_EQ(REFUSAL_NONE, check(&request));
	request.path = "/api/";
	CHECK_EQ(REFUSAL_ORIGIN, check(&request));
}

TEST(gate_says_first_that_the_host_is_wrong)
{
	struct gate_request request = good();

	request.authorization = NULL;
	request.method = "POST";
	request.origin = "http://evil.example";
	request.host = "evil.example:8123";
	CHECK_EQ(REFUSAL_HOST, check(&request));
	request.host = NULL;
	CHECK_EQ(REFUSAL_HOST, check(&request));
	request.host = "127.0.0.1:8123";
	request.doubled = true;
	CHECK_EQ(REFUSAL_HOST, check(&request));
	request.doubled = false;
	CHECK_EQ(REFUSAL_ORIGIN, check(&request));
	request.origin = NULL;
	CHECK_EQ(REFUSAL_METHOD, check(&request));
	request.method = "GET";
	CHECK_EQ(REFUSAL_TOKEN, check(&request));
}

TEST(gate_refuses_what_is_too_long)
{
	struct gate_request request = good();

	request.length = GATE_LENGTH_MAX;
	CHECK_EQ(REFUSAL_NONE, check(&request));
	request.length++;
	CHECK_EQ(REFUSAL_QUERY, check(&request));
}
