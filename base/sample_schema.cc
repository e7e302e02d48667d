#include "base/sample_schema.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

constexpr size_t kNameCharactersMax = 64;

std::string FormText(const ChannelForm& form) {
  const std::string lanes = form.lanes == 1 ? std::string() : fmt::format("[{}]", form.lanes);
  return fmt::format("{}{} a {}", Name(form.type), lanes, Name(form.extent));
}

Status CheckSource(const Channel& channel) {
  const ChannelForm& form = channel.form;
  ChannelForm due = {form.name, ChannelType::kInt32, ChannelExtent::kToken, 1};
  if (channel.source == ChannelSource::kSlot) {
    due.extent = ChannelExtent::kSample;
    due.lanes = 2;
  }
  if (channel.source == ChannelSource::kData || form == due) return OkStatus();
  return InvalidArgument("sample schema: channel \"{}\" is filled from {}, which is {}, not {}",
                         form.name, Name(channel.source), FormText(due), FormText(form));
}

}  // namespace

const char* Name(ChannelType type) { return type == ChannelType::kInt32 ? "i32" : "f32"; }

const char* Name(ChannelExtent extent) {
  return extent == ChannelExtent::kToken ? "token" : "sample";
}

const char* Name(ChannelSource source) {
  switch (source) {
    case ChannelSource::kData:
      return "data";
    case ChannelSource::kDataOrPlace:
      return "data or place";
    case ChannelSource::kSlot:
      return "slot";
  }
  return "?";
}

const char* Name(ChannelReader reader) {
  switch (reader) {
    case ChannelReader::kFirstStage:
      return "first stage";
    case ChannelReader::kLastStage:
      return "last stage";
    case ChannelReader::kAnyStage:
      return "any stage";
  }
  return "?";
}

std::string ToText(const ChannelForm& form) { return form.name + " " + FormText(form); }

std::string ToText(std::span<const ChannelForm> forms) {
  std::string text;
  for (const ChannelForm& form : forms) text += (text.empty() ? "" : ", ") + ToText(form);
  return text.empty() ? "nothing" : text;
}

const ChannelForm* FindForm(std::span<const ChannelForm> forms, std::string_view name) {
  const auto found = std::find_if(forms.begin(), forms.end(),
                                  [&](const ChannelForm& form) { return form.name == name; });
  return found == forms.end() ? nullptr : &*found;
}

bool IsChannelName(std::string_view name) {
  return !name.empty() && name.size() <= kNameCharactersMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

SampleSchema::SampleSchema(std::vector<Channel> channels) : channels_(std::move(channels)) {
  for (const Channel& channel : channels_) version_ = std::max(version_, channel.since);
}

StatusOr<SampleSchema> SampleSchema::Make(std::vector<Channel> channels) {
  if (std::ssize(channels) > kChannelsMax) {
    return InvalidArgument("sample schema: {} channels exceed the limit of {}", channels.size(),
                           kChannelsMax);
  }
  for (const Channel& channel : channels) {
    const ChannelForm& form = channel.form;
    if (!IsChannelName(form.name)) {
      return InvalidArgument("sample schema: \"{}\" is not a channel name",
                             form.name.substr(0, 64));
    }
    if (std::count_if(channels.begin(), channels.end(),
                      [&](const Channel& other) { return other.form.name == form.name; }) != 1) {
      return InvalidArgument("sample schema: channel \"{}\" appears twice", form.name);
    }
    if (form.lanes < 1 || form.lanes > kLanesMax) {
      return InvalidArgument("sample schema: channel \"{}\" has {} lanes, must have 1 to {}",
                             form.name, form.lanes, kLanesMax);
    }
    if (channel.since < 1) {
      return InvalidArgument("sample schema: channel \"{}\": since is version {}, below 1",
                             form.name, channel.since);
    }
    TROUPE_RETURN_IF_ERROR(CheckSource(channel));
  }
  return SampleSchema(std::move(channels));
}

const Channel* SampleSchema::Find(std::string_view name) const {
  const auto found = std::find_if(channels_.begin(), channels_.end(), [&](const Channel& channel) {
    return channel.form.name == name;
  });
  return found == channels_.end() ? nullptr : &*found;
}

SampleSchema CurrentSampleSchema() {
  using enum ChannelType;
  using enum ChannelExtent;
  using enum ChannelSource;
  using enum ChannelReader;
  const auto named = [](std::string_view name, ChannelType type, ChannelExtent extent,
                        int64_t lanes) {
    return ChannelForm{std::string(name), type, extent, lanes};
  };
  auto schema = SampleSchema::Make({
      {.form = named(channels::kTokens, kInt32, kToken, 1),
       .reader = kFirstStage,
       .required = true},
      {.form = named(channels::kTargets, kInt32, kToken, 1),
       .reader = kLastStage,
       .required = true},
      // MoE blocks weight their auxiliary losses by it.
      {.form = named(channels::kWeights, kFloat32, kToken, 1), .required = true},
      {.form = named(channels::kPositions, kInt32, kToken, 1), .source = kDataOrPlace},
      // Attention sees the keys of all context ranks.
      {.form = named(channels::kDocuments, kInt32, kToken, 1), .whole_samples = true},
      {.form = named(channels::kSlots, kInt32, kSample, 2), .source = kSlot},
  });
  TROUPE_CHECK_OK(schema.status());
  return *std::move(schema);
}

std::string ToText(const SampleSchema& schema) {
  std::string text = fmt::format("sample schema {}\n", schema.version());
  for (const Channel& channel : schema.channels()) {
    text += fmt::format("{}: from {}, for {}{}{}; since {}\n", ToText(channel.form),
                        Name(channel.source), Name(channel.reader),
                        channel.form.extent == ChannelExtent::kSample ? ""
                        : channel.whole_samples                       ? ", whole samples"
                                                                      : ", own tokens",
                        channel.required ? ", required" : "", channel.since);
  }
  return text;
}

}  // namespace troupe
