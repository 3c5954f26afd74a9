import { defineConfig } from 'vite'

export default defineConfig({
  // `svc dev` and `svc build` write the client here: it is no package of a registry.
  resolve: { alias: { svc: `${import.meta.dirname}/_generated/svc` } },
})
