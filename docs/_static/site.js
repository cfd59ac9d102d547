/* A picture opens at its full size: on a phone its numbers are small. */
document.addEventListener("DOMContentLoaded", () => {
  for (const picture of document.querySelectorAll(".bd-article img")) {
    if (picture.closest("a, .sphx-glr-thumbcontainer") || !picture.src) continue;
    const link = document.createElement("a");
    link.href = picture.src;
    link.title = "Open the picture at its full size";
    picture.replaceWith(link);
    link.append(picture);
  }
});
