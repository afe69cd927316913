// Reloads the page when a file of the game changes. `platform dev` adds this script to the pages of
// a folder that it serves; no deployed game has it.
(() => {
  const address = document.currentScript.src.replace("http", "ws").replace("reload.js", "changes");
  let socket;
  const connect = () => {
    if (socket && socket.readyState < WebSocket.CLOSING) return;
    socket = new WebSocket(address);
    socket.onmessage = () => location.reload();
  };
  connect();
  // The server may have been started again meanwhile.
  addEventListener("focus", connect);
})();
