// Makes the texts of a message valid UTF-8, which no peer can parse it without. A reason may quote
// a file, and so have any byte.
#ifndef TROUPE_WORKER_RANK_UTF8_TEXTS_H_
#define TROUPE_WORKER_RANK_UTF8_TEXTS_H_

namespace google::protobuf {
class Message;
}

namespace troupe {

// Replaces every ill-formed part of a text of `message`, and of the messages within it, by U+FFFD.
// Maps are left as they are.
void MakeTextsUtf8(google::protobuf::Message* message);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_UTF8_TEXTS_H_
