/**
 * The module "svc" at run time. It is bundled into every artifact, so it depends only on the
 * language. Its types are written by hand in svc.d.ts, and a test compares the two; a name that
 * begins with `__` is for the builder alone.
 */
export { cronJobs } from './crons.ts'
export { endpoint } from './endpoints.ts'
export { UniqueViolation } from './errors.ts'
export {
  action,
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
  requireExports as __requireExports,
} from './functions.ts'
export { hook, httpRoutes } from './http-routes.ts'
export { migration, readMigrations as __readMigrations } from './migrations.ts'
export { defineSchema, table } from './schemas.ts'
export { signature } from './signatures.ts'
export { v } from './validators.ts'
