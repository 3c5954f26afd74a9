/**
 * Every failure this product names, once. `message` is what any caller may read, so it says nothing
 * about stored values; `next` is the step that the command line prints below it.
 */
import type { Kind } from './kinds.ts'

export interface CodeRow {
  readonly kind: Kind
  readonly message: string
  readonly next: string
  /** Where the code differs from its kind. */
  readonly retryable?: boolean
}

export const CODES = {
  // Server start (Document 1, Errors).
  SERVER_CONFIGURATION_MISSING: {
    kind: 'startup',
    message: 'A required setting is missing or empty.',
    next: 'Set the named variable, or its _FILE form, and start again.',
  },
  SERVER_CONFIGURATION_INVALID: {
    kind: 'startup',
    message: 'A setting does not have the required form.',
    next: 'Correct the named variable; `svc-server check` tells without touching anything.',
  },
  SERVER_DATABASE_URL_INVALID: {
    kind: 'startup',
    message: 'A database URL needs the postgres scheme, a host and one database name.',
    next: 'Correct the named variable: postgres://user:password@host:5432/database.',
  },
  SERVER_SECRET_CONFIGURATION_CONFLICT: {
    kind: 'startup',
    message: 'One secret is configured in more than one way.',
    next: 'Keep exactly one of the named variables.',
  },
  SERVER_OIDC_CONFIG_INVALID: {
    kind: 'startup',
    message: 'The OIDC configuration file breaks a rule.',
    next: 'Correct the named field of the file.',
  },
  SERVER_MANAGED_SOURCE_AUTHORITY_INVALID: {
    kind: 'startup',
    message: 'The managed source authority is not one exact canonical HTTPS origin.',
    next: 'Set SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY to https://host without a path.',
  },
  SERVER_MANAGED_SOURCE_CONFIGURATION_INCOMPLETE: {
    kind: 'startup',
    message: 'The managed enrollment token and the source authority belong together.',
    next: 'Set both variables or remove both.',
  },
  SERVER_PLATFORM_DATABASE_UNAVAILABLE: {
    kind: 'startup',
    message: 'The identity database could not be reached, or its version or schema does not fit.',
    next: 'Check that PostgreSQL 16 or newer runs at the configured URL and has our schema.',
  },
  SERVER_DOCUMENT_DATABASE_UNAVAILABLE: {
    kind: 'startup',
    message: 'The document database could not be used.',
    next: 'Check that PostgreSQL 16 or newer runs at SERVICE_PLATFORM_DATABASE_URL and is ours.',
  },
  SERVER_IDENTITY_PEPPER_MISMATCH: {
    kind: 'startup',
    message:
      'SERVICE_PLATFORM_IDENTITY_PEPPER is not the pepper that this identity database was used ' +
      'with, so no session, invitation or recovery code of it could be verified.',
    next:
      'Restore the pepper that belongs to this database, or correct the database URL. If it is ' +
      'lost, stop the server and run `svc-server migrate` once with ' +
      'SERVICE_PEPPER_CHANGE_CONFIRM=void-every-session-and-invitation.',
  },
  SERVER_OIDC_PEPPER_MISMATCH: {
    kind: 'startup',
    message:
      'subjectPepper of the OIDC configuration is not the pepper that this identity database was ' +
      'used with, so no identity link of this provider could be resolved.',
    next:
      'Restore the OIDC configuration that belongs to this database, or correct the database ' +
      'URL. If the pepper is lost, stop the server and run `svc-server migrate` once with ' +
      'SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM=void-every-identity-link.',
  },
  SERVER_BOOTSTRAP_FILE_MISSING: {
    kind: 'startup',
    message: 'A first-owner code is pending but its protected file is gone.',
    next: 'Restore the state directory of this database, or run `svc-server recover-bootstrap`.',
  },
  SERVER_BOOTSTRAP_RECOVERY_CONFIRMATION_INVALID: {
    kind: 'startup',
    message: 'The recovery phrase is missing or wrong.',
    next: 'Run it with SERVICE_BOOTSTRAP_RECOVERY_CONFIRM=replace-lost-initial-owner-code.',
  },
  SERVER_BOOTSTRAP_ALREADY_COMPLETE: {
    kind: 'startup',
    message: 'An operator exists already, so there is no first-owner code to replace.',
    next: 'Use the session of an existing owner.',
  },
  SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN: {
    kind: 'startup',
    message: 'The replacement code may or may not have been stored.',
    next: 'Run `svc-server recover-bootstrap` again: it revokes any unknown pending code first.',
  },
  SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID: {
    kind: 'startup',
    message: 'The recovery phrase is missing or wrong.',
    next: 'Set SERVICE_OWNER_RECOVERY_CONFIRM=issue-owner-invitation and run it again.',
  },
  SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING: {
    kind: 'startup',
    message: 'No operator exists yet, so there is no owner to let in again.',
    next: 'Use the first-owner code of `svc-server serve`, or run `svc-server recover-bootstrap`.',
  },
  SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN: {
    kind: 'startup',
    message: 'The owner invitation may or may not have been stored.',
    next: 'Run `svc-server recover-owner` again: it revokes any unknown pending code first.',
  },
  SERVER_STATE_DIRECTORY_INVALID: {
    kind: 'startup',
    message: 'The state directory or a file in it is not safe to use.',
    next: 'Make it a directory that only the server user can write (mode 0700).',
  },
  SERVER_PRODUCT_ROOT_INVALID: {
    kind: 'startup',
    message: 'The Product root is not an initialized one, or its files cannot be used as they are.',
    next: 'Mend what is named, or restore the whole directory; `svc init` makes a new, empty root.',
  },
  SERVER_PRODUCT_ROOT_UNAVAILABLE: {
    kind: 'startup',
    message:
      'The Product root cannot be read or written; nothing says that what it holds is wrong.',
    next: 'Make room on its disk, have it writable, or give this user the rights that are missing.',
  },
  SERVER_PRODUCT_ROOT_LOCKED: {
    kind: 'startup',
    message: 'Another process owns this Product root.',
    next: 'Stop the other svc-server first; one process may own a Product root.',
  },
  SERVER_LISTEN_FAILED: {
    kind: 'startup',
    message: 'A listener could not be opened.',
    next: 'Check that nothing else uses the address and that this user may bind it.',
  },
  SERVER_SANDBOX_UNAVAILABLE: {
    kind: 'startup',
    message: 'Functions cannot be contained on this machine.',
    next: 'Use a kernel with Landlock and seccomp, or unset SERVICE_RUNNER_SANDBOX to run without.',
  },

  // Management origin (wire decisions, section 1).
  PLATFORM_REQUEST_INVALID: {
    kind: 'invalid',
    message: 'The request is not valid.',
    next: 'Correct the request.',
  },
  PLATFORM_AUTHENTICATION_FAILED: {
    kind: 'unauthenticated',
    message: 'Authentication failed.',
    next: 'Log in again with `svc login`.',
  },
  PLATFORM_ACCESS_DENIED: {
    kind: 'forbidden',
    message: 'The operator lacks the capability at this scope.',
    next: 'Ask an owner to grant the capability at this exact scope.',
  },
  PLATFORM_NOT_FOUND: {
    kind: 'not_found',
    message: 'There is no such resource.',
    next: 'Check the path and the identifier.',
  },
  PLATFORM_METHOD_NOT_ALLOWED: {
    kind: 'method_not_allowed',
    message: 'The resource does not answer this method.',
    next: 'Use one of the methods in the Allow header.',
  },
  PLATFORM_NOT_ACCEPTABLE: {
    kind: 'not_acceptable',
    message: 'The answer is only available as JSON.',
    next: 'Send Accept: application/json.',
  },
  PLATFORM_MEDIA_TYPE_UNSUPPORTED: {
    kind: 'media_type',
    message: 'The body has an unsupported media type or is compressed.',
    next: 'Send the Content-Type that the route documents, and the body as it is.',
  },
  PLATFORM_CONFLICT: {
    kind: 'conflict',
    message: 'The request conflicts with the current state.',
    next: 'Read the current state and decide again.',
  },
  PLATFORM_INVITATION_OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The Operation ID belongs to a different issuance.',
    next: 'Use a new Operation ID for a deliberately new invitation.',
  },
  PLATFORM_MANAGED_SOURCE_CONFLICT: {
    kind: 'conflict',
    message: 'The source revision was already applied with other grants.',
    next: 'Reconcile the state of the control plane.',
  },
  PLATFORM_MANAGED_SOURCE_STALE: {
    kind: 'conflict',
    message: 'The source revision is older than the applied one.',
    next: 'Send a greater source revision.',
  },
  PLATFORM_BODY_TOO_LARGE: {
    kind: 'too_large',
    message: 'The request body is too large.',
    next: 'Send a smaller body.',
  },
  PLATFORM_RATE_LIMITED: {
    kind: 'rate_limited',
    message: 'Too many requests.',
    next: 'Wait for the time in Retry-After.',
  },
  PLATFORM_UNAVAILABLE: {
    kind: 'unavailable',
    message: 'The service is temporarily unavailable.',
    next: 'Try again in a moment.',
  },
  PLATFORM_IDENTITY_RESULT_UNCERTAIN: {
    kind: 'uncertain',
    message: 'The change may or may not have been stored.',
    next: 'Look at sessions, invitations and audit before you create new secrets.',
  },
  PLATFORM_IDENTITY_STORAGE_CORRUPT: {
    kind: 'corrupt',
    message: 'Stored identity data breaks an invariant.',
    next: 'Stop writing, keep the database as it is and restore or investigate.',
  },
  PLATFORM_INTERNAL: {
    kind: 'internal',
    message: 'The service failed.',
    next: 'Look for the request ID in the server log.',
  },
  PRODUCT_INVALID: {
    kind: 'invalid',
    message: 'The Product request is not valid.',
    next: 'Correct the request.',
  },
  PRODUCT_SCHEMA_INVALID: {
    kind: 'invalid',
    message: 'The document does not fit the schema.',
    next: 'Correct the document.',
  },
  PRODUCT_INCOMPATIBLE: {
    kind: 'invalid',
    message: 'The Release does not fit.',
    next: 'Read the failed checks; correct the Workspace and publish again, or the documents.',
  },
  PRODUCT_NOT_FOUND: {
    kind: 'not_found',
    message: 'There is no such Product resource.',
    next: 'Check the identifiers with `svc status --remote`.',
  },
  PRODUCT_RELEASE_RETIRED: {
    kind: 'gone',
    message: 'The Release is retired.',
    next: 'Choose another Release.',
  },
  PRODUCT_CAS_CONFLICT: {
    kind: 'conflict',
    message: 'The expected state is not the current one.',
    next: 'Read `svc status --remote` or `svc config list --remote`, reconcile and try again.',
  },
  PRODUCT_OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The identifier belongs to a different request.',
    next: 'Use a new identifier for a deliberately new operation.',
  },
  PRODUCT_STATE_CONFLICT: {
    kind: 'conflict',
    message: 'The resource is not in a state that allows this.',
    next: 'Read the state with `svc status --remote` and decide again.',
  },
  PRODUCT_UNAVAILABLE: {
    kind: 'unavailable',
    message: 'The Product Environment is temporarily unavailable.',
    next: 'Try again in a moment, with the same bytes.',
  },
  PRODUCT_CORRUPT: {
    kind: 'corrupt',
    message: 'Stored Product data breaks an invariant.',
    next: 'Stop writing, keep the Product root as it is and restore or investigate.',
  },

  // Application origin (wire decisions, section 1).
  REQUEST_INVALID: {
    kind: 'invalid',
    message: 'The request is not valid.',
    next: 'Correct the request.',
  },
  ARGUMENTS_INVALID: {
    kind: 'invalid',
    message: 'The arguments do not fit the Function.',
    next: 'Compare the arguments with the validators of the Function.',
  },
  APPLICATION_KEY_REQUIRED: {
    kind: 'unauthenticated',
    message: 'An Application Key is required.',
    next: 'Send the Application Key in X-Service-Key.',
  },
  APPLICATION_KEY_INVALID: {
    kind: 'unauthenticated',
    message: 'The Application Key is not valid.',
    next: 'Use a key that is active in this Environment.',
  },
  FUNCTIONAL_TOKEN_REQUIRED: {
    kind: 'unauthenticated',
    message: 'The Function requires a functional token.',
    next: 'Send the token in Authorization.',
  },
  FUNCTIONAL_TOKEN_INVALID: {
    kind: 'unauthenticated',
    message: 'The functional token is not valid.',
    next: 'Obtain a fresh token.',
  },
  GRANT_INVALID: {
    kind: 'unauthenticated',
    message: 'The grant is not valid.',
    next: 'Ask the application for a new grant.',
  },
  AUTH_POLICY_DENIED: {
    kind: 'forbidden',
    message: 'The key or identity may not call this Function.',
    next:
      'Use a key and an identity of the kinds that the Function allows, and a key whose scopes ' +
      'hold the kind of the Function: query, mutation or action. The log of the server says which.',
  },
  ORIGIN_DENIED: {
    kind: 'forbidden',
    message: 'The browser origin is not allowed.',
    next: 'Add the origin to SERVICE_PRODUCT_ALLOWED_ORIGINS.',
  },
  TARGET_DENIED: {
    kind: 'forbidden',
    message: 'The target may not be used with this key.',
    next: 'Use a target that the key and the Environment allow.',
  },
  TARGET_NOT_FOUND: {
    kind: 'not_found',
    message: 'The target does not exist or serves nothing.',
    next: 'Check Channels and Releases with `svc status --remote`.',
  },
  FUNCTION_NOT_FOUND: {
    kind: 'not_found',
    message: 'The target has no such public Function of this kind.',
    next: 'Check the Function name and its kind.',
  },
  FILE_NOT_FOUND: {
    kind: 'not_found',
    message: 'There is no such file.',
    next: 'Check the file ID.',
  },
  ROUTE_NOT_FOUND: {
    kind: 'not_found',
    message: 'There is no such route.',
    next: 'Check the path.',
  },
  METHOD_NOT_ALLOWED: {
    kind: 'method_not_allowed',
    message: 'The route does not answer this method.',
    next: 'Use one of the methods in the Allow header.',
  },
  MEDIA_TYPE_UNSUPPORTED: {
    kind: 'media_type',
    message: 'The body has an unsupported media type or is compressed.',
    next: 'Send Content-Type: application/json, and the body as it is.',
  },
  OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The operation ID belongs to a different Mutation.',
    next: 'Use a new operation ID for a deliberately new Mutation.',
  },
  UNIQUE_VIOLATION: {
    kind: 'conflict',
    message: 'Another document has the same value where a unique index allows it once.',
    next: 'Change the value, or read the document that has it. The server log names the index.',
  },
  WRITE_CONFLICT: {
    kind: 'conflict',
    message: 'The Mutation lost against concurrent ones too often.',
    next: 'Send the same Mutation again.',
    retryable: true,
  },
  RELEASE_RETIRED: {
    kind: 'gone',
    message: 'The Release is retired.',
    next: 'Select a supported target.',
  },
  LIMIT_EXCEEDED: {
    kind: 'too_large',
    message: 'A limit was exceeded.',
    next: 'Reduce the request; the server log names the limit.',
  },
  RANGE_INVALID: {
    kind: 'range',
    message: 'The range cannot be served.',
    next: 'Ask for a range inside the file.',
  },
  RATE_LIMITED: {
    kind: 'rate_limited',
    message: 'Too many requests.',
    next: 'Wait for the time in Retry-After.',
  },
  INTERNAL: {
    kind: 'internal',
    message: 'The service failed.',
    next: 'Look for the request ID in the server log.',
  },
  FUNCTION_FAILED: {
    kind: 'internal',
    message: 'The Function failed.',
    next: 'Look for the request ID in the server log: it has the stack trace.',
  },
  RESULT_INVALID: {
    kind: 'internal',
    message: 'The Function answered something that its own validator rejects.',
    next: 'Look for the request ID in the server log: it names the field.',
  },
  BUSY: {
    kind: 'unavailable',
    message: 'The service is busy.',
    next: 'Try again in a moment.',
  },
  UNAVAILABLE: {
    kind: 'unavailable',
    message: 'The service is temporarily unavailable.',
    next: 'Try again in a moment.',
  },
  RESULT_UNCERTAIN: {
    kind: 'uncertain',
    message: 'The Mutation may or may not have been stored.',
    next: 'Send the same Mutation with the same operation ID: it settles the outcome.',
    retryable: true,
  },
  DEADLINE_EXCEEDED: {
    kind: 'deadline',
    message: 'The invocation took too long.',
    next: 'Try again, or make the Function do less in one call.',
  },

  // The command line.
  CLIENT_USAGE: {
    kind: 'usage',
    message: 'The command was used wrongly.',
    next: 'See `svc --help`.',
  },
  CLIENT_NOT_LOGGED_IN: {
    kind: 'unauthenticated',
    message: 'There is no stored session.',
    next: 'Log in with `svc login --url URL --code-env VAR`.',
  },
  CLIENT_CREDENTIALS_INVALID: {
    kind: 'corrupt',
    message: 'The credentials file is not one of ours.',
    next: 'Move the file away and log in again.',
  },
  CLIENT_ORIGIN_INVALID: {
    kind: 'usage',
    message: 'A server origin must be HTTPS, or http://127.0.0.1:3220 for a local one.',
    next: 'Give the exact origin, without a path.',
  },
  CLIENT_ORIGIN_MISMATCH: {
    kind: 'conflict',
    message: 'The session is of another Management origin.',
    next: 'Log in to that origin, or use a root that is linked to the one of the session.',
  },
  CLIENT_ROOT_INVALID: {
    kind: 'invalid',
    message: 'The directory is not an initialized root.',
    next: 'Create one with `svc init` or connect one with `svc link`.',
  },
  CLIENT_SERVER_UNREACHABLE: {
    kind: 'unavailable',
    message: 'The server did not answer.',
    next: 'Check the address and that the server runs, then try again.',
  },
  CLIENT_RESULT_UNCERTAIN: {
    kind: 'uncertain',
    message: 'The connection was lost before the answer; the change may have been made.',
    next: 'Read the current state with `svc status --remote` before you try again.',
  },
  CLIENT_CODE_UNDELIVERED: {
    kind: 'uncertain',
    message: 'The invitation is issued, but its code was not delivered and is shown only once.',
    next: 'Revoke the invitation and issue a new one, with a new Operation ID.',
  },
  CLIENT_BROWSER_LOGIN_FAILED: {
    kind: 'unauthenticated',
    message: 'The login in the browser did not succeed.',
    next: 'Run the command again; if it fails again, ask who runs the identity provider.',
  },
  CLIENT_RESPONSE_INVALID: {
    kind: 'internal',
    message: 'The server answered something this client does not understand.',
    next: 'Check that the address is the Management origin and that versions fit.',
  },
  CLIENT_FILE_FAILED: {
    kind: 'internal',
    message: 'A local file could not be read or written.',
    next: 'Check the path and its permissions.',
  },
  CLIENT_PACKAGE_INVALID: {
    kind: 'invalid',
    message: 'The package cannot be published.',
    next: 'Build one with `svc build --out FILE` in a root of the same Project.',
  },
  CLIENT_ROOT_EXISTS: {
    kind: 'conflict',
    message: 'The directory is a root already.',
    next: 'Use it as it is, or give another directory.',
  },
  CLIENT_FAILED: {
    kind: 'internal',
    message: 'The client failed.',
    next: 'Run the command again; if it fails again, report it with its output.',
  },
  CLIENT_INTERRUPTED: {
    kind: 'internal',
    message: 'Interrupted.',
    next: 'Run the command again.',
  },
  CLIENT_CHANGE_INTERRUPTED: {
    kind: 'uncertain',
    message: 'Interrupted; the change may have been made.',
    next: 'Read the current state with `svc status --remote` before you try again.',
  },
  WORKSPACE_INVALID: {
    kind: 'invalid',
    message: 'The Workspace does not build.',
    next: 'Correct the named file and line.',
  },
} as const satisfies Record<string, CodeRow>

export type TableCode = keyof typeof CODES
/** `APP_*` codes are declared by a Function; their kind travels with the Fault. */
export type ApplicationCode = `APP_${string}`
export type Code = TableCode | ApplicationCode
