#pragma once
// Private to keys.cpp: the fields of the key table, made from pointers to members.
#include "config/keys.hpp"

#include <concepts>

namespace sharefs::config {

using Texts = std::vector<std::string>;

template <class Pointer> struct MemberPointer;
template <class Class, class Type> struct MemberPointer<Type Class::*> {
  using Parent = Class;
};
template <auto Member> using ParentOf = typename MemberPointer<decltype(Member)>::Parent;

template <auto Member> auto& in(void* parent) {
  return static_cast<ParentOf<Member>*>(parent)->*Member;
}
template <auto Member> const auto& in(const void* parent) {
  return static_cast<const ParentOf<Member>*>(parent)->*Member;
}
template <class Parent> const void* defaults_of() {
  static const Parent k_defaults{};
  return &k_defaults;
}

// These functions convert values to the texts of a file and back. Texts are read only after they were checked.
template <class T> Texts texts_of(const T& value) {
  if constexpr (std::same_as<T, Texts>)
    return value;
  else if constexpr (std::same_as<T, std::string>)
    return {value};
  else if constexpr (requires { value.has_value(); })
    return value ? texts_of(*value) : Texts{};
  else if constexpr (std::same_as<T, bool>)
    return {value ? "true" : "false"};
  else
    return {std::to_string(value)};
}

template <class T> void read_texts(T& into, const Texts& texts) {
  if constexpr (std::same_as<T, Texts>)
    into = texts;
  else if constexpr (std::same_as<T, std::string>)
    into = texts.front();
  else if constexpr (requires { into.emplace(); })
    read_texts(into.emplace(), texts);
  else if constexpr (std::same_as<T, bool>)
    into = texts.front() == "true";
  else
    into = static_cast<T>(std::stoul(texts.front()));
}

/// A text, a list of texts, a number or a flag.
template <auto Member>
inline constexpr Field k_value{.get = [](const void* parent) { return texts_of(in<Member>(parent)); },
                               .set = [](void* parent, const Texts& texts) { read_texts(in<Member>(parent), texts); },
                               .defaults = defaults_of<ParentOf<Member>>};

/// For `servers` and `mounts`: the mappings below them are read into the outer struct.
inline constexpr Field k_same{.add = [](void* parent, const std::string&, const Origin&) { return parent; },
                              .items = [](const void* parent) { return std::vector<Item>{{{}, parent}}; }};

/// A struct, or an optional struct, which gets its origin when it is added.
template <auto Member>
inline constexpr Field k_one{.add = [](void* parent, const std::string&, const Origin& origin) -> void* {
                               auto& member = in<Member>(parent);
                               if constexpr (requires { member.emplace(); }) {
                                 member.emplace().origin = origin;
                                 return &*member;
                               } else {
                                 return &member;
                               }
                             },
                             .items = [](const void* parent) -> std::vector<Item> {
                               const auto& member = in<Member>(parent);
                               if constexpr (requires { *member; })
                                 return member ? std::vector<Item>{{{}, &*member}} : std::vector<Item>{};
                               else
                                 return {{{}, &member}};
                             }};

/// A vector of structs: a mapping with names in the file, or a list.
template <auto Member>
inline constexpr Field k_each{.add = [](void* parent, const std::string& name, const Origin& origin) -> void* {
                                auto& added = in<Member>(parent).emplace_back();
                                if constexpr (requires { added.name; })
                                  added.name = name;
                                added.origin = origin;
                                return &added;
                              },
                              .items =
                                  [](const void* parent) {
                                    std::vector<Item> items;
                                    for (const auto& item : in<Member>(parent))
                                      if constexpr (requires { item.name; })
                                        items.push_back({item.name, &item});
                                      else
                                        items.push_back({{}, &item});
                                    return items;
                                  }};

} // namespace sharefs::config
