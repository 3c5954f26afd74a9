/** The snapshot of Workspaces, Releases and Channels. */
import { Status } from '../status.ts'
import { environmentOperation } from './operation.ts'

export const readStatus = environmentOperation({
  method: 'GET',
  path: '/status',
  name: 'readStatus',
  summary: 'Returns the Workspaces, Releases, Channels and the serving policy.',
  capability: 'releases:read',
  replies: { 200: Status },
})

export const statusOperations = { readStatus }
