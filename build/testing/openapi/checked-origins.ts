/**
 * Mounts the origins for tests, and checks each response against the OpenAPI document: the status,
 * the headers and a body of JSON. Requests of no documented operation are not checked.
 */
import type { ApplicationOrigin } from '../../../src/http/application/mount.ts'
import {
  type ManagementOrigin,
  type MountOptions,
  mountManagement,
} from '../../../src/http/management/mount.ts'
import type { PeerBinding } from '../../../src/http/rate-limits.ts'
import { RejectionLog } from '../../../src/http/rejection-log.ts'
import { publishedContract } from './contract.ts'

export interface TestManagement extends ManagementOrigin {
  /** Sends a request to the path. */
  request(path: string, init?: RequestInit, binding?: PeerBinding): Promise<Response>
}

type TestMountOptions<A> = Omit<MountOptions<A>, 'rejections'> & {
  /** A log of its own by default. */
  readonly rejections?: MountOptions<A>['rejections']
}

/** Mounts the management origin with checked responses. */
export function testManagement<A>(options: TestMountOptions<A>): TestManagement {
  const rejections = options.rejections ?? new RejectionLog(options.log)
  const origin = mountManagement<A>({ ...options, rejections })
  const fetch: TestManagement['fetch'] = async (request, binding) =>
    checked(request, await origin.fetch(request, binding))
  return {
    fetch,
    reject: origin.reject,
    request: async (path, init, binding) =>
      fetch(new Request(`http://localhost${path}`, init), binding),
  }
}

/** Returns the origin with checked responses. */
export function checkedApplication(origin: ApplicationOrigin): ApplicationOrigin {
  return {
    ...origin,
    fetch: async (request, binding) => checked(request, await origin.fetch(request, binding)),
  }
}

async function checked(request: Request, response: Response): Promise<Response> {
  await publishedContract().checkAny(request.method, new URL(request.url).pathname, response)
  return response
}
