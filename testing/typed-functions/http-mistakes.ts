/** Mistakes in routes for other services, each under a comment that expects an error. */
export const HTTP_MISTAKES = `
import { endpoint, hook, httpRoutes, internalMutation, query, signature, v } from 'svc'
import type { FunctionReference, HttpDelivery } from 'svc'

export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { type } = delivery.json as { type: string }
    const text: string = new TextDecoder().decode(delivery.body) + delivery.headers['x-event']
    const at: bigint = delivery.receivedAt
    ctx.log.info(type + text + at + delivery.id + delivery.method + delivery.path)
    // @ts-expect-error the JSON of a stranger has no type
    return delivery.json.type
  },
})

export const page = query({
  clients: ['public'],
  returns: v.httpResponse(),
  handler: () => ({ status: 201, headers: { etag: '"1"' }, contentType: 'text/csv', body: 'a' }),
})
export const bytes = query({
  clients: ['public'],
  returns: v.httpResponse(),
  handler: () => ({ body: new Uint8Array(1) }),
})
export const text = query({
  clients: ['public'],
  returns: v.httpResponse(),
  // @ts-expect-error a status is a number
  handler: () => ({ status: '201' }),
})

interface Delivery {
  id: string
  receivedAt: bigint
  method: string
  path: string
  headers: { [key: string]: string }
  query: { [key: string]: string }
  body: Uint8Array
  json?: unknown
}
declare const handler: FunctionReference<'mutation', { delivery: Delivery }, null>
declare const other: FunctionReference<'mutation', { delivery: string }, null>
declare const query_: FunctionReference<'query', { delivery: HttpDelivery }, null>
const verify = signature.stripe({ secret: 'STRIPE', toleranceSeconds: 60 })

export const routes = httpRoutes({
  a: hook({ path: '/a', verify, handler, once: (delivery) => delivery.headers['x-id'] ?? '' }),
  b: hook({ path: '/b', methods: ['PUT'], verify: 'none', handler, headers: ['x-id'] }),
  // @ts-expect-error a hook has a verification
  c: hook({ path: '/c', handler }),
  // @ts-expect-error a Query has no effect
  d: hook({ path: '/d', verify, handler: query_ }),
  // @ts-expect-error the handler gets a delivery
  e: hook({ path: '/e', verify, handler: other }),
  // @ts-expect-error each delivery has an ID of its own, so it does not tell repeats
  f: hook({ path: '/f', verify, handler, once: (delivery) => delivery.id }),
  // @ts-expect-error GitHub signs no time
  g: hook({ path: '/g', verify: signature.github({ secret: 'G', toleranceSeconds: 5 }), handler }),
  i: endpoint({ path: '/i/:delivery', methods: ['GET'], handler: query_, origins: '*' }),
  j: endpoint({ path: '/j', methods: ['POST'], handler: other, origins: ['https://a.example'] }),
  // @ts-expect-error an endpoint has methods
  k: endpoint({ path: '/k', handler: other }),
  // @ts-expect-error the Function declares who may call it
  l: endpoint({ path: '/l', methods: ['POST'], handler: other, auth: 'none' }),
  // @ts-expect-error a handler is a reference
  m: endpoint({ path: '/m', methods: ['POST'], handler: () => null }),
  // @ts-expect-error a route is made with hook
  h: { path: '/h', verify, handler },
})
`
