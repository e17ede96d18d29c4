#pragma once
// Additions to k_image and k_bind (mount_call.hpp) for shares on which root of this host has no rights: the server may
// map root to nobody (root_squash), and an image may belong to another user.

namespace sharefs::sys {

/// `fs_type` of an image file that a user mounts without root by squashfuse(1). Only this user can see it.
inline constexpr const char* k_user_image = "fuse.squashfuse";

/// An option of k_image, followed by a UID: the image lies on a share and may belong to this user. It is opened as this
/// user, because the server may refuse root.
inline constexpr const char* k_image_owner = "owner=";

/// An option of k_bind, followed by a UID: the target on a share is reached as this user.
inline constexpr const char* k_reached_as = "as=";

} // namespace sharefs::sys
