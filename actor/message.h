// A message between actors: a value of any movable type that has a name for traces.
//
//   struct Tick { static constexpr std::string_view kMessageName = "tick"; int64_t count = 0; };
//   context.Send(to, AnyMessage(Tick{3}));
//   …
//   if (const Tick* tick = message.As<Tick>()) …
//
// Move-only, because a message has one reader. Not thread-safe by itself; the runtime passes it
// between threads.
#ifndef TROUPE_ACTOR_MESSAGE_H_
#define TROUPE_ACTOR_MESSAGE_H_

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

template <typename T>
concept HasMessageName = requires {
  { T::kMessageName } -> std::convertible_to<std::string_view>;
};

// The name is asked for first, because whether AnyMessage is movable depends on this concept.
template <typename T>
concept MessageBody = HasMessageName<T> && std::movable<T>;

class AnyMessage {
 public:
  AnyMessage() = default;

  template <MessageBody T>
  explicit AnyMessage(T body) : body_(std::make_unique<BodyOf<T>>(std::move(body))) {}

  AnyMessage(AnyMessage&&) noexcept = default;
  AnyMessage& operator=(AnyMessage&&) noexcept = default;

  bool empty() const { return body_ == nullptr; }
  std::string_view name() const { return body_ ? body_->name() : "empty"; }

  // The body if it is a T, else null. The caller may move from it.
  template <MessageBody T>
  T* As() {
    return body_ && body_->type == TypeOf<T>() ? &static_cast<BodyOf<T>*>(body_.get())->value
                                               : nullptr;
  }
  template <MessageBody T>
  const T* As() const {
    return const_cast<AnyMessage*>(this)->As<T>();
  }

 private:
  struct Body {
    explicit Body(const void* the_type) : type(the_type) {}
    virtual ~Body() = default;
    virtual std::string_view name() const = 0;
    const void* const type;
  };

  template <typename T>
  struct BodyOf final : Body {
    explicit BodyOf(T the_value) : Body(TypeOf<T>()), value(std::move(the_value)) {}
    std::string_view name() const override { return T::kMessageName; }
    T value;
  };

  // The address of a static per type identifies the type: cheaper than RTTI and sufficient for an
  // exact match.
  template <typename T>
  static const void* TypeOf() {
    static constexpr char kTag = 0;
    return &kTag;
  }

  std::unique_ptr<Body> body_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_MESSAGE_H_
