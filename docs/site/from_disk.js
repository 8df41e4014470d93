// Browsers start no worker for a page from the disk, and the search of the site is one. There it
// runs in a hidden frame instead, whose window takes the place of the worker's own scope.
if (location.protocol === "file:") {
  window.Worker = class {
    #frame = document.createElement("iframe");
    #loaded;

    constructor(url) {
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const scope = this.#frame.contentWindow;
      scope.postMessage = (data) => this.#deliver(window, data, (event) => this.onmessage?.(event));
      const script = scope.document.createElement("script");
      script.src = new URL(url, location);
      this.#loaded = new Promise((done) => { script.onload = done; });
      script.onerror = (event) => this.onerror?.(event);
      scope.document.body.append(script);
    }

    postMessage(data) {
      const scope = this.#frame.contentWindow;
      this.#loaded.then(() => this.#deliver(scope, data, (event) => scope.dispatchEvent(event)));
    }

    terminate() {
      this.#frame.remove();
    }

    // Never at once: who posts a message does not expect the answer before the next one is posted.
    #deliver(scope, data, take) {
      setTimeout(() => take(new scope.MessageEvent("message", { data })));
    }
  };
}
