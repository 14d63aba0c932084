// Nothing listens on Windows: what tidemark.exe records ends with it, and is not steered from
// outside.
#include "collect/control.h"

bool control_where(int, char text[CONTROL_TEXT_MAX])
{
	text[0] = 0;
	return false;
}

bool control_ask(const struct control_request *, char text[CONTROL_TEXT_MAX], struct err *err)
{
	(void)text;
	return err_set(err, ERR_USAGE, "a recording cannot be controlled from outside on Windows");
}
