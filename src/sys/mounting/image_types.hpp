#pragma once
// What k_image and k_bind (mount_call.hpp) have besides, where root of this host is not everywhere at home: its server
// may take it for nobody (root_squash), and images may be another user's.

namespace sharefs::sys {

/// `fs_type` of an image file that a user mounts without root, for this user alone, by squashfuse(1).
inline constexpr const char* k_user_image = "fuse.squashfuse";

/// An option of k_image, with a UID behind it: the image lies on a share and may be that user's, as whom it is opened,
/// because the server may refuse root.
inline constexpr const char* k_image_owner = "owner=";

/// An option of k_bind, with a UID behind it: the user as whom the target on a share is reached.
inline constexpr const char* k_reached_as = "as=";

} // namespace sharefs::sys
