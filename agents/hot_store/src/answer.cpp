#include "answer.h"

namespace hotstore {

const char* answer_name(Answer answer) {
  switch (answer) {
    case Answer::ok:
      return "ok";
    case Answer::exists:
      return "exists";
    case Answer::not_found:
      return "not found";
    case Answer::locked:
      return "locked";
    case Answer::lease_lost:
      return "lease lost";
    case Answer::changed:
      return "changed";
    case Answer::full:
      return "full";
    case Answer::unconfirmed:
      return "unconfirmed";
  }
  return "unknown";
}

}  // namespace hotstore
