/**
 * The module "svc" at run time. It is bundled into every artifact, so it depends only on the
 * language. Its types are written by hand in svc.d.ts, and a test compares the two.
 */
export { cronJobs } from './crons.ts'
export { UniqueViolation } from './errors.ts'
export {
  action,
  internalAction,
  internalMutation,
  internalQuery,
  mutation,
  query,
} from './functions.ts'
export { defineSchema, table } from './schemas.ts'
export { v } from './validators.ts'
