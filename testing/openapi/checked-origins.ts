/**
 * Mounts the origins for tests, and checks each response against the OpenAPI document: the status,
 * the headers and a body of JSON. Requests of no documented operation are not checked.
 */
import type { ApplicationOrigin } from '../../src/http/application/mount.ts'
import {
  type ManagementOrigin,
  type MountOptions,
  mountManagement,
} from '../../src/http/management/mount.ts'
import type { PeerBinding } from '../../src/http/rate-limits.ts'
import { RejectionLog } from '../../src/http/rejection-log.ts'
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

/** Returns the origin with checked responses; `readsBodies` is false if a test reads slowly. */
export function checkedApplication(
  origin: ApplicationOrigin,
  readsBodies = true,
): ApplicationOrigin {
  return {
    ...origin,
    fetch(request, binding) {
      const answer = origin.fetch(request, binding)
      // An upgrade is complete once `fetch` returns.
      if (answer instanceof Response && answer.status === 101) return answer
      return Promise.resolve(answer).then((response) => checked(request, response, readsBodies))
    },
  }
}

async function checked(request: Request, response: Response, readsBody = true): Promise<Response> {
  // At the root of its own host, the S3-compatible API has paths of other operations.
  if (response.headers.has('x-amz-request-id')) return response
  const { method } = request
  const path = new URL(request.url).pathname
  try {
    await publishedContract().checkAny({ method, path, readsBody }, response)
  } catch (error) {
    // Where a listener calls the origin, the test itself sees a 500 alone.
    process.stderr.write(`${String(error)}\n`)
    throw error
  }
  return response
}
