// A classic script, with neither import nor export, sees the global as well.

function signIn(): void {
  location.href = platform.loginUrl();
}

document.querySelector("button")?.addEventListener("click", signIn);
