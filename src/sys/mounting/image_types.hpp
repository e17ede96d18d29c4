#pragma once
// What k_image (mount_call.hpp) has besides: images that somebody else than root has made.

namespace sharefs::sys {

/// `fs_type` of an image file that a user mounts without root, for this user alone, by squashfuse(1).
inline constexpr const char* k_user_image = "fuse.squashfuse";

/// An option of k_image, with a UID behind it: the image lies on a share and may be that user's, as whom it is opened,
/// because the server may refuse root.
inline constexpr const char* k_image_owner = "owner=";

} // namespace sharefs::sys
