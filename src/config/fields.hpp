#pragma once
// Private to keys.cpp: the fields of the table, made from pointers to members.
#include "config/keys.hpp"

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

template <auto Member>
inline constexpr Field k_text{.get = [](const void* parent) { return Texts{in<Member>(parent)}; },
                              .set = [](void* parent, const Texts& texts) { in<Member>(parent) = texts.front(); },
                              .defaults = defaults_of<ParentOf<Member>>};

template <auto Member>
inline constexpr Field k_texts{.get = [](const void* parent) { return in<Member>(parent); },
                               .set = [](void* parent, const Texts& texts) { in<Member>(parent) = texts; },
                               .defaults = defaults_of<ParentOf<Member>>};

/// `servers`, `mounts`: their names are read into the struct around them.
inline constexpr Field k_same{.add = [](void* parent, const std::string&, const Origin&) { return parent; },
                              .items = [](const void* parent) { return std::vector<Item>{{{}, parent}}; }};

/// A struct, or an optional one with its origin.
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

/// A vector of structs, with names or as a list.
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
