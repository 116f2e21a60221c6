// The last script: what others read off the page, they have read.
(function () {
  "use strict";
  // Options, dates and names with a number stay on one line: a browser breaks them after every hyphen.
  var whole = /--[a-z][a-z-]*|\d{4}-\d\d-\d\d(T[\d:.]+Z?)?|\b[A-Za-z]{1,10}-\d\w{0,11}\b/g;
  var walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) if (!walker.currentNode.parentNode.closest("svg, code, pre") && walker.currentNode.data.search(whole) >= 0) texts.push(walker.currentNode);
  texts.forEach(function (text) {
    var piece = document.createDocumentFragment(), at = 0;
    text.data.replace(whole, function (word) {
      var place = arguments[arguments.length - 2], span = document.createElement("span");
      span.className = "onepiece";
      span.textContent = word;
      piece.append(text.data.slice(at, place), span);
      at = place + word.length;
    });
    piece.append(text.data.slice(at));
    text.replaceWith(piece);
  });
})();
