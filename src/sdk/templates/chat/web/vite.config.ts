import { defineConfig } from 'vite'

export default defineConfig({
  // `svc dev` and `svc build` write the client to this directory. It is in no registry.
  resolve: { alias: { svc: `${import.meta.dirname}/_generated/svc` } },
})
