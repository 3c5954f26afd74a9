/**
 * The table of error codes of the server and the client. Any caller may read `message`, so it says
 * nothing about stored values; the command line prints `next`, the next step, below it.
 */
import type { Kind } from './kinds.ts'

export interface CodeRow {
  readonly kind: Kind
  readonly message: string
  readonly next: string
  /** Overrides the `retryable` of the kind. */
  readonly retryable?: boolean
}

export const CODES = {
  // Server start (contract/management.md, Errors).
  SERVER_CONFIGURATION_MISSING: {
    kind: 'setting',
    message: 'A required setting is missing or empty.',
    next: 'Set the named variable, or its _FILE form, then restart the server.',
  },
  SERVER_CONFIGURATION_INVALID: {
    kind: 'setting',
    message: 'A setting does not have the required form.',
    next: 'Correct the named variable; `svc-server check` validates it and changes nothing.',
  },
  SERVER_DATABASE_URL_INVALID: {
    kind: 'setting',
    message: 'A database URL needs the postgres scheme, a host and one database name.',
    next: 'Correct the named variable. The form is postgres://user:password@host:5432/database.',
  },
  SERVER_SECRET_CONFIGURATION_CONFLICT: {
    kind: 'setting',
    message: 'One secret is configured in more than one way.',
    next: 'Keep exactly one of the named variables.',
  },
  SERVER_OIDC_CONFIG_INVALID: {
    kind: 'setting',
    message: 'The OIDC configuration file has an invalid field.',
    next: 'Correct the named field of the file, then restart the server.',
  },
  SERVER_MANAGED_SOURCE_AUTHORITY_INVALID: {
    kind: 'setting',
    message: 'The managed source authority is not one exact canonical HTTPS origin.',
    next: 'Set SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY to https://host without a path.',
  },
  SERVER_MANAGED_SOURCE_CONFIGURATION_INCOMPLETE: {
    kind: 'setting',
    message: 'Only one of the managed enrollment token and the source authority is set.',
    next: 'Set both variables, or remove both.',
  },
  SERVER_PLATFORM_DATABASE_UNAVAILABLE: {
    kind: 'startup',
    message: 'The identity database is unreachable, or its version or schema is not supported.',
    next:
      'Check that PostgreSQL 16 or newer runs at the configured URL and that no newer or foreign ' +
      'program owns the schema.',
  },
  SERVER_DOCUMENT_DATABASE_UNAVAILABLE: {
    kind: 'startup',
    message: 'The document database is unreachable, unsupported or belongs to another Environment.',
    next:
      'Check that PostgreSQL 16 or newer runs at SERVICE_PLATFORM_DATABASE_URL and that the ' +
      'database holds the documents of this Environment.',
  },
  SERVER_IDENTITY_PEPPER_MISMATCH: {
    kind: 'setting',
    message:
      'SERVICE_PLATFORM_IDENTITY_PEPPER is not the pepper that this identity database was used ' +
      'with, so no session, invitation or recovery code in it can be verified.',
    next:
      'Restore the pepper that belongs to this database, or correct the database URL. If it is ' +
      'lost, stop the server and run `svc-server migrate` once with ' +
      'SERVICE_PEPPER_CHANGE_CONFIRM=void-every-session-and-invitation.',
  },
  SERVER_OIDC_PEPPER_MISMATCH: {
    kind: 'setting',
    message:
      'subjectPepper of the OIDC configuration is not the pepper that this identity database was ' +
      'used with, so no identity link of this provider can be resolved.',
    next:
      'Restore the OIDC configuration that belongs to this database, or correct the database ' +
      'URL. If the pepper is lost, stop the server and run `svc-server migrate` once with ' +
      'SERVICE_SUBJECT_PEPPER_CHANGE_CONFIRM=void-every-identity-link.',
  },
  SERVER_BOOTSTRAP_FILE_MISSING: {
    kind: 'startup',
    message: 'A first-owner code is pending, but the protected file that holds it is missing.',
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
    next: 'Log in as an existing owner, or run `svc-server recover-owner`.',
  },
  SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN: {
    kind: 'startup',
    message: 'The replacement code may or may not have been stored.',
    next: 'Run `svc-server recover-bootstrap` again: it revokes any unknown pending code first.',
  },
  SERVER_OWNER_RECOVERY_CONFIRMATION_INVALID: {
    kind: 'startup',
    message: 'The recovery phrase is missing or wrong.',
    next: 'Run the command with SERVICE_OWNER_RECOVERY_CONFIRM=issue-owner-invitation.',
  },
  SERVER_OWNER_RECOVERY_BOOTSTRAP_PENDING: {
    kind: 'startup',
    message: 'No operator exists yet, so there is no owner whose access could be recovered.',
    next: 'Use the first-owner code of `svc-server serve`, or run `svc-server recover-bootstrap`.',
  },
  SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN: {
    kind: 'startup',
    message: 'The owner invitation may or may not have been stored.',
    next: 'Run `svc-server recover-owner` again: it revokes any unknown pending code first.',
  },
  SERVER_STATE_DIRECTORY_INVALID: {
    kind: 'setting',
    message:
      'The state directory cannot be created, or it or a file in it has an unsafe type, owner or ' +
      'mode.',
    next: 'Make it a directory that only the user of the server can write (mode 0700).',
  },
  SERVER_STATE_DIRECTORY_UNAVAILABLE: {
    kind: 'startup',
    message: 'The state directory cannot be read or written.',
    next: 'Check that its disk is mounted and has free space, then start the server again.',
  },
  SERVER_PRODUCT_ROOT_INVALID: {
    kind: 'startup',
    message: 'The Product root is not initialized, or one of its files is not valid.',
    next:
      'Fix the named file, or restore the whole directory from a backup; `svc init` ' +
      'creates a new, empty root.',
  },
  SERVER_PRODUCT_ROOT_UNAVAILABLE: {
    kind: 'startup',
    message:
      'The Product root cannot be read or written. There is no sign that its data is damaged.',
    next: 'Free space on its disk, make it writable, or grant this user the missing permissions.',
  },
  SERVER_PRODUCT_ROOT_LOCKED: {
    kind: 'startup',
    message: 'Another process owns this Product root.',
    next: 'Stop the other svc-server first: only one process may own a Product root.',
  },
  SERVER_DOCUMENTS_OLDER: {
    kind: 'setting',
    message: 'The documents are older than the Product root: acknowledged changes are missing.',
    next:
      'Restore the documents that belong to this root, with their log (-wal) where there is one. ' +
      'To continue without the missing changes, start once with `svc-server serve --accept-loss ' +
      'SEQUENCE` and the sequence that the documents end at.',
  },
  SERVER_DATABASE_NEWER: {
    kind: 'setting',
    message: 'A newer version of this program has changed a database, and this one cannot use it.',
    next:
      'Start the newer version, or restore the backup that was made before it changed the ' +
      'database.',
  },
  SERVER_UPGRADE_BACKUP_FAILED: {
    kind: 'startup',
    message:
      'The backup before migrations, after which the previous version cannot start, failed, so ' +
      'nothing was migrated.',
    next:
      'Make the target of backups reachable, or start the previous version again. To migrate ' +
      'without this backup, make another one and unset the SERVICE_BACKUP_* settings.',
  },
  SERVER_LISTEN_FAILED: {
    kind: 'startup',
    message: 'A listener could not be opened.',
    next: 'Check that nothing else uses the address and that this user may bind it.',
  },
  SERVER_NOT_READY: {
    kind: 'unavailable',
    message: 'The server does not run, or it does not serve.',
    next: 'Read the log of the server; `svc-server doctor` finds the reason.',
  },
  SERVER_SANDBOX_UNAVAILABLE: {
    kind: 'startup',
    message: 'The kernel of this machine cannot sandbox Functions.',
    next:
      'Use a kernel with Landlock and seccomp, or unset SERVICE_RUNNER_SANDBOX to run Functions ' +
      'without a sandbox.',
  },
  SERVER_SETUP_UNSUPPORTED: {
    kind: 'startup',
    message: 'The setup cannot be done on this machine as it is. Nothing was changed.',
    next: '`svc-server setup --dry-run` prints the steps and changes nothing.',
  },
  SERVER_SETUP_FAILED: {
    kind: 'startup',
    message: 'A step of the setup failed.',
    next: 'Remove the reason that is named above, and run the same command again.',
  },

  // Management origin (contract/wire.md, Error codes).
  PLATFORM_REQUEST_INVALID: {
    kind: 'invalid',
    message: 'The request is not valid.',
    next: 'Correct the request and send it again.',
  },
  PLATFORM_AUTHENTICATION_FAILED: {
    kind: 'unauthenticated',
    message: 'Authentication failed.',
    next: 'Log in again with `svc login`.',
  },
  PLATFORM_ACCESS_DENIED: {
    kind: 'forbidden',
    message: 'The operator does not have the required capability at this scope.',
    next: 'Ask an owner to grant the capability at this exact scope.',
  },
  PLATFORM_NOT_FOUND: {
    kind: 'not_found',
    message: 'The resource does not exist.',
    next: 'Check the path and the identifier.',
  },
  PLATFORM_METHOD_NOT_ALLOWED: {
    kind: 'method_not_allowed',
    message: 'The resource does not support this method.',
    next: 'Use one of the methods in the Allow header.',
  },
  PLATFORM_NOT_ACCEPTABLE: {
    kind: 'not_acceptable',
    message: 'The response is only available as JSON.',
    next: 'Send Accept: application/json.',
  },
  PLATFORM_MEDIA_TYPE_UNSUPPORTED: {
    kind: 'media_type',
    message: 'The body has an unsupported media type or is compressed.',
    next: 'Send the Content-Type that the route documents, and the body uncompressed.',
  },
  PLATFORM_CONFLICT: {
    kind: 'conflict',
    message: 'The request conflicts with the current state.',
    next: 'Read the current state, then decide whether to repeat the request.',
  },
  PLATFORM_INVITATION_OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The Operation ID belongs to a different issuance.',
    next: 'Use a new Operation ID for a deliberately new invitation.',
  },
  PLATFORM_MANAGED_SOURCE_CONFLICT: {
    kind: 'conflict',
    message: 'The source revision was already applied with other grants.',
    next: 'Reconcile the control plane with the applied grants, then send a new source revision.',
  },
  PLATFORM_MANAGED_SOURCE_STALE: {
    kind: 'conflict',
    message: 'The source revision is older than the applied one.',
    next: 'Send a source revision that is newer than the applied one.',
  },
  PLATFORM_BODY_TOO_LARGE: {
    kind: 'too_large',
    message: 'The request body is too large.',
    next: 'Send a smaller body.',
  },
  PLATFORM_RATE_LIMITED: {
    kind: 'rate_limited',
    message: 'Too many requests.',
    next: 'Wait for the time given in Retry-After, then try again.',
  },
  PLATFORM_UNAVAILABLE: {
    kind: 'unavailable',
    message: 'The service is temporarily unavailable.',
    next: 'Try again in a moment.',
  },
  PLATFORM_IDENTITY_RESULT_UNCERTAIN: {
    kind: 'uncertain',
    message: 'The change may or may not have been stored.',
    next: 'Check sessions, invitations and the audit log before you create new secrets.',
  },
  PLATFORM_IDENTITY_STORAGE_CORRUPT: {
    kind: 'corrupt',
    message: 'Stored identity data breaks an invariant.',
    next: 'Stop the server, keep a copy of the database, then investigate or restore a backup.',
  },
  PLATFORM_INTERNAL: {
    kind: 'internal',
    message: 'The service failed unexpectedly.',
    next: 'Find the request ID in the server log: its entry has the cause.',
  },
  PRODUCT_INVALID: {
    kind: 'invalid',
    message: 'The Product request is not valid.',
    next: 'Correct the request and send it again.',
  },
  // Reserved for documents that break the schema (contract/wire.md, Error codes): nothing raises it
  // yet.
  PRODUCT_SCHEMA_INVALID: {
    kind: 'invalid',
    message: 'The document does not match the schema.',
    next: 'Correct the document.',
  },
  PRODUCT_INCOMPATIBLE: {
    kind: 'invalid',
    message: 'The Release is not compatible with the stored documents or the serving Releases.',
    next: 'Read the failed checks; `svc docs schema-changes` says how to change a schema.',
  },
  PRODUCT_NOT_FOUND: {
    kind: 'not_found',
    message: 'The Product resource does not exist.',
    next: 'Check the identifiers with `svc status`.',
  },
  PRODUCT_RELEASE_RETIRED: {
    kind: 'gone',
    message: 'The Release is retired.',
    next: 'Choose a Release that is not retired.',
  },
  PRODUCT_CAS_CONFLICT: {
    kind: 'conflict',
    message: 'The current state is not the one that the request expects.',
    next:
      'Read the current state with `svc status` or `svc config list`, then ' +
      'repeat the change from there.',
  },
  PRODUCT_OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The identifier belongs to a different request.',
    next: 'Use a new identifier for a deliberately new operation.',
  },
  PRODUCT_STATE_CONFLICT: {
    kind: 'conflict',
    message: 'The current state of the resource does not allow this change.',
    next: 'Read the state with `svc status`, then decide whether to repeat the change.',
  },
  PRODUCT_UNAVAILABLE: {
    kind: 'unavailable',
    message: 'The Product Environment is temporarily unavailable.',
    next: 'Send the same request, byte for byte, again in a moment.',
  },
  PRODUCT_CORRUPT: {
    kind: 'corrupt',
    message: 'Stored Product data breaks an invariant.',
    next: 'Stop the server, keep a copy of the Product root, then investigate or restore a backup.',
  },
  BACKUP_CORRUPT: {
    kind: 'corrupt',
    message: 'The backup is incomplete or was altered.',
    next: 'Use another copy of the backup, or an earlier one. Nothing of this one was restored.',
  },
  BACKUP_TARGET_CHANGED: {
    kind: 'unavailable',
    message: 'Another file system, or none, is in the place of the one that has the backups.',
    next:
      'Mount the file system of the backups again, then `svc backup create`. ' +
      'To use the one that is there, restart the server.',
  },
  BACKUP_VERSION_UNKNOWN: {
    kind: 'invalid',
    message: 'A newer version of the server made the backup.',
    next: 'Restore with the version of `svc-server` that made the backup, or with a later one.',
  },
  RESTORE_POINT_NOT_FOUND: {
    kind: 'not_found',
    message: 'No backup leads to the state that is to be restored.',
    next: 'Choose a sequence or a time that the backups cover, or leave it out for the newest.',
  },
  RESTORE_NOT_EMPTY: {
    kind: 'conflict',
    message: 'A restore writes only into an empty directory and into empty databases.',
    next: 'Name a directory and databases that do not exist yet or are empty.',
  },

  // Application origin (contract/wire.md, Error codes).
  REQUEST_INVALID: {
    kind: 'invalid',
    message: 'The request is not valid.',
    next: 'Correct the request and send it again.',
  },
  ARGUMENTS_INVALID: {
    kind: 'invalid',
    message: 'The arguments do not match the validators of the Function.',
    next: 'Correct the arguments: compare them with the argument validators of the Function.',
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
    next: 'Send the token in the Authorization header.',
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
  SIGNATURE_INVALID: {
    kind: 'unauthenticated',
    message: 'The signature of the request is not valid.',
    next: 'Compare the secret of the Environment with that of the service; the log has the reason.',
  },
  AUTH_POLICY_DENIED: {
    kind: 'forbidden',
    message: 'The key or identity may not call this Function.',
    next:
      'Use a key and an identity of the kinds that the Function allows, and a key whose scopes ' +
      'include the kind of the Function: query, mutation or action. The server log names the rule.',
  },
  ORIGIN_DENIED: {
    kind: 'forbidden',
    message: 'The browser origin is not allowed.',
    next: 'Add the origin to SERVICE_PRODUCT_ALLOWED_ORIGINS, or to `origins` of the endpoint.',
  },
  TARGET_DENIED: {
    kind: 'forbidden',
    message: 'The target may not be used with this key.',
    next: 'Use a target that both the key and the Environment allow.',
  },
  TARGET_NOT_FOUND: {
    kind: 'not_found',
    message: 'The target does not exist or does not serve a Release.',
    next: 'Check Channels and Releases with `svc status`.',
  },
  FUNCTION_NOT_FOUND: {
    kind: 'not_found',
    message: 'The target has no such public Function of this kind.',
    next: 'Check the Function name and its kind.',
  },
  FILE_NOT_FOUND: {
    kind: 'not_found',
    message: 'The file does not exist.',
    next: 'Check the file ID.',
  },
  ROUTE_NOT_FOUND: {
    kind: 'not_found',
    message: 'The route does not exist.',
    next: 'Check the path.',
  },
  METHOD_NOT_ALLOWED: {
    kind: 'method_not_allowed',
    message: 'The route does not support this method.',
    next: 'Use one of the methods in the Allow header.',
  },
  UPGRADE_REQUIRED: {
    kind: 'upgrade_required',
    message: 'The route is a WebSocket.',
    next: 'Open it with a WebSocket client that offers the subprotocol service.realtime.v2 or v1.',
  },
  MEDIA_TYPE_UNSUPPORTED: {
    kind: 'media_type',
    message: 'The body has an unsupported media type or is compressed.',
    next: 'Send Content-Type: application/json, and the body uncompressed.',
  },
  OPERATION_REUSED: {
    kind: 'conflict',
    message: 'The operation ID belongs to a different Mutation.',
    next: 'Use a new operation ID for a deliberately new Mutation.',
  },
  UNIQUE_VIOLATION: {
    kind: 'conflict',
    message: 'Another document has the same value where a unique index allows it once.',
    next: 'Change the value, or update the document that has it. The server log names the index.',
  },
  WRITE_CONFLICT: {
    kind: 'conflict',
    message: 'The Mutation conflicted with concurrent Mutations until its deadline.',
    next: 'Send the same Mutation again.',
    retryable: true,
  },
  RELEASE_RETIRED: {
    kind: 'gone',
    message: 'The Release is retired.',
    next: 'Choose a target that is not retired.',
  },
  LIMIT_EXCEEDED: {
    kind: 'too_large',
    message: 'The request or its result exceeds a limit.',
    next: 'Reduce the size of the request. The server log names the limit.',
  },
  RANGE_INVALID: {
    kind: 'range',
    message: 'The requested range is outside the file.',
    next: 'Request a range inside the file.',
  },
  RATE_LIMITED: {
    kind: 'rate_limited',
    message: 'Too many requests.',
    next: 'Wait for the time given in Retry-After, then try again.',
  },
  INTERNAL: {
    kind: 'internal',
    message: 'The service failed unexpectedly.',
    next: 'Find the request ID in the server log: its entry has the cause.',
  },
  FUNCTION_FAILED: {
    kind: 'internal',
    message: 'The Function failed.',
    next: 'Find the request ID in the server log: its entry has the stack trace.',
  },
  RESULT_INVALID: {
    kind: 'internal',
    message: 'The Function returned a value that its own validator rejects.',
    next: 'Find the request ID in the server log: its entry names the field.',
  },
  BUSY: {
    kind: 'unavailable',
    message: 'The service is at its capacity.',
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
    next: 'Send the same Mutation with the same operation ID again: its reply has the outcome.',
    retryable: true,
  },
  DEADLINE_EXCEEDED: {
    kind: 'deadline',
    message: 'The invocation did not finish before its deadline.',
    next: 'Try again, or have the Function do less in one call.',
  },

  // The command line.
  CLIENT_USAGE: {
    kind: 'usage',
    message: 'The command line is not valid.',
    next: 'Correct the command; `svc --help` lists commands and options.',
  },
  CLIENT_NOT_LOGGED_IN: {
    kind: 'unauthenticated',
    message: 'There is no stored session.',
    next: 'Log in with `svc login --url URL --code-env VAR`.',
  },
  CLIENT_CREDENTIALS_INVALID: {
    kind: 'corrupt',
    message: 'The credentials file was not written by this client, or it is damaged.',
    next: 'Move the file away and log in again.',
  },
  CLIENT_ORIGIN_INVALID: {
    kind: 'usage',
    message: 'A server origin must be HTTPS, or http://127.0.0.1:3220 for a local one.',
    next: 'Specify the exact origin, without a path.',
  },
  CLIENT_ORIGIN_MISMATCH: {
    kind: 'conflict',
    message: 'The session belongs to another Management origin.',
    next: 'Log in to that origin, or use a root that is linked to the origin of the session.',
  },
  CLIENT_ROOT_INVALID: {
    kind: 'invalid',
    message: 'The directory is not a root that this command can use.',
    next: 'Create a root with `svc init`, or connect one with `svc link`.',
  },
  CLIENT_SERVER_UNREACHABLE: {
    kind: 'unavailable',
    message: 'The server did not respond.',
    next: 'Check the address and that the server is running, then try again.',
  },
  CLIENT_RESULT_UNCERTAIN: {
    kind: 'uncertain',
    message: 'The connection was lost before the response. The change may have been made.',
    next: 'Read the current state with `svc status` before you try again.',
  },
  CLIENT_CODE_UNDELIVERED: {
    kind: 'uncertain',
    message: 'The invitation is issued, but its code, which is shown only once, was not delivered.',
    next: 'Revoke the invitation and issue a new one, with a new Operation ID.',
  },
  CLIENT_BROWSER_LOGIN_FAILED: {
    kind: 'unauthenticated',
    message: 'The login in the browser did not succeed.',
    next: 'Run the command again. If it fails again, contact the administrator of the provider.',
  },
  CLIENT_RESPONSE_INVALID: {
    kind: 'internal',
    message: 'The server sent a response that this client does not understand.',
    next:
      'Check that the address is the Management origin and that client and server have the same ' +
      'version.',
  },
  CLIENT_FILE_FAILED: {
    kind: 'internal',
    message: 'A local file could not be read or written.',
    next: 'Check the path, its permissions and the free space of its disk.',
  },
  CLIENT_TOOL_UNAVAILABLE: {
    kind: 'forbidden',
    message: 'The session of the agent has no such tool.',
    next: 'Use a tool that is listed, or ask the person whom you work for.',
  },
  CLIENT_PACKAGE_INVALID: {
    kind: 'invalid',
    message: 'The package cannot be published.',
    next: 'Build a package with `svc build --out FILE` in a root of the same Project.',
  },
  CLIENT_EXPORT_INVALID: {
    kind: 'invalid',
    message: 'The export cannot be converted.',
    next: 'Make the export again as `svc docs importing` describes, or choose another format.',
  },
  CLIENT_ROOT_EXISTS: {
    kind: 'conflict',
    message: 'The directory is already a root.',
    next: 'Use the existing root, or specify another directory.',
  },
  CLIENT_FAILED: {
    kind: 'internal',
    message: 'The client failed unexpectedly.',
    next: 'Run the command again. If it fails again, report the failure with its output.',
  },
  CLIENT_INTERRUPTED: {
    kind: 'internal',
    message: 'The command was interrupted.',
    next: 'Run the command again.',
  },
  CLIENT_CHANGE_INTERRUPTED: {
    kind: 'uncertain',
    message: 'The command was interrupted. The change may have been made.',
    next: 'Read the current state with `svc status` before you try again.',
  },
  CLIENT_UPGRADE_IMPOSSIBLE: {
    kind: 'conflict',
    message: 'This installation cannot be upgraded by this command.',
    next: 'Upgrade it by the way that it was installed.',
  },
  CLIENT_UPGRADE_UNDELIVERED: {
    kind: 'unavailable',
    message: 'The release could not be read as a whole.',
    next: 'Check the address and the connection, then run the command again.',
  },
  CLIENT_UPGRADE_UNTRUSTED: {
    kind: 'corrupt',
    message: 'The release is not what the owner of the key has signed.',
    next: 'Use another mirror. If it is the same there, tell the maintainers of the release.',
  },
  CLIENT_UPGRADE_OLDER: {
    kind: 'conflict',
    message: 'The release is older than the installed version.',
    next: 'Name the address of a newer release with --from, or add --allow-downgrade.',
  },
  CLIENT_UPGRADE_BLOCKED: {
    kind: 'conflict',
    message: 'The new version would not start with the settings and databases of this server.',
    next: 'Fix what the check of the new version names, then run the command again.',
  },
  CLIENT_UPGRADE_ONE_WAY: {
    kind: 'conflict',
    message: 'The upgrade is one way: the installed version cannot start afterwards.',
    next: 'Read `svc docs upgrade`, then run the command again with --yes.',
  },
  CLIENT_UPGRADE_RUNNING: {
    kind: 'conflict',
    message: 'Another upgrade of this installation is running.',
    next: 'Wait until it has ended, then run the command again.',
  },
  CLIENT_UPGRADE_ROLLED_BACK: {
    kind: 'internal',
    message: 'The new version did not become ready, so the previous one was restored and serves.',
    next: 'Read the log of the server for the reason before you upgrade again.',
  },
  CLIENT_UPGRADE_NOT_READY: {
    kind: 'uncertain',
    message: 'The server is not ready after the upgrade.',
    next: 'Read the log of the server; `svc-server doctor` finds the reason.',
  },
  WORKSPACE_INVALID: {
    kind: 'invalid',
    message: 'The Workspace could not be built.',
    next: 'Correct the named file at the named line.',
  },
  SEED_FAILED: {
    kind: 'invalid',
    message: 'A call of the seed file failed; the calls before it took effect.',
    next: 'Correct the file, then start again with `--reset --seed FILE`.',
  },
  REDACTION_INVALID: {
    kind: 'invalid',
    message: 'The redaction file cannot be applied; nothing was copied.',
    next: 'Correct the file, then start again. `svc docs dev` has its rules.',
  },
  COPY_ROOT_NOT_EMPTY: {
    kind: 'conflict',
    message: 'A backup is copied only into a root without documents.',
    next: 'Add --reset to delete what the root has, or name another root.',
  },
} as const satisfies Record<string, CodeRow>

export type TableCode = keyof typeof CODES
/** A code that a Function declares. Its kind is passed with the Fault. */
export type ApplicationCode = `APP_${string}`
export type Code = TableCode | ApplicationCode
