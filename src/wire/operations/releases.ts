/** Validation and retirement of a Release. */
import { Retired, Validated, ValidateRequest } from '../releases.ts'
import { environmentOperation } from './operation.ts'
import { VALIDATE_DEADLINE_MS } from './workspace.ts'

export const validateRelease = environmentOperation({
  method: 'POST',
  path: '/releases/:releaseId',
  name: 'validateRelease',
  summary: 'Validates a published Release, also against the Release of a Channel.',
  capability: 'releases:publish',
  body: { schema: ValidateRequest },
  replay: 'safe',
  replies: { 200: Validated },
  errors: ['PRODUCT_INCOMPATIBLE', 'PRODUCT_RELEASE_RETIRED'],
  deadlineMs: VALIDATE_DEADLINE_MS,
})

export const retireRelease = environmentOperation({
  method: 'POST',
  path: '/releases/:releaseId/retire',
  name: 'retireRelease',
  summary: 'Retires a Release that no Channel or serving policy uses.',
  capability: 'releases:publish',
  replay: 'safe',
  replies: { 200: Retired },
  errors: ['PRODUCT_STATE_CONFLICT'],
})

export const releaseOperations = { validateRelease, retireRelease }
